"""A short number scale with a highlighted range and marks for the values of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.plain_text import tooltip


class ScaleMark(NamedTuple):
    """One value on the scale."""

    value: float
    label: str
    is_outcome: bool = False
    """Whether this is the outcome: drawn as a wedge with its label above. Others are lines with labels below."""


class NumberScale(Themed, QWidget):
    """Scale from `low` to `high` with one range filled. Its description comes from its owner."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._low, self._high = 0.0, 1.0
        self._filled: tuple[float, float] = (0.0, 0.0)
        self._marks: tuple[ScaleMark, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(label)

    @property
    def marks(self) -> tuple[ScaleMark, ...]:
        """The shown marks."""
        return self._marks

    def show_marks(
        self, low: float, high: float, filled: tuple[float, float], marks: Sequence[ScaleMark], description: str
    ) -> None:
        """Show the marks. `description`: the same in words, as tooltip and for screen readers."""
        self._low, self._high, self._filled, self._marks = low, max(high, low + 1e-9), filled, tuple(marks)
        set_up(self, description=description, tooltip=tooltip(description))
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of a line with labels above and below."""
        return QSize(self._theme.px(200), self._line * 2 + self._theme.px(20))

    def minimumSizeHint(self) -> QSize:
        """Return a small width and the full height."""
        return QSize(self._theme.px(120), self.sizeHint().height())

    @property
    def _line(self) -> int:
        """Height of a label."""
        return round(QFontMetricsF(self._theme.font(11)).height())

    def _x(self, value: float) -> float:
        edge = self._theme.px(6)
        fraction = min(max((value - self._low) / (self._high - self._low), 0.0), 1.0)
        return edge + fraction * (self.width() - 2 * edge)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the line, the filled range and the marks."""
        theme, painter = self._theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle, thick = self._line + theme.px(10), theme.px(6)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("line"))
        painter.drawRoundedRect(QRectF(self._x(self._low), middle - thick / 2, self._x(self._high) - self._x(self._low),
                                       thick), thick / 2, thick / 2)  # fmt: skip
        left, right = map(self._x, self._filled)
        painter.setBrush(theme.color("accent", 0.7))
        painter.drawRoundedRect(QRectF(left, middle - thick / 2, right - left, thick), thick / 2, thick / 2)
        taken: list[tuple[float, float]] = []
        for mark in self._marks:
            self._paint_mark(painter, mark, middle, taken)

    def _paint_mark(
        self, painter: QPainter, mark: ScaleMark, middle: float, occupied_spans: list[tuple[float, float]]
    ) -> None:
        theme, x = self._theme, self._x(mark.value)
        painter.setFont(theme.font(11, 600 if mark.is_outcome else 400, tabular=True))
        wide = QFontMetricsF(painter.font()).horizontalAdvance(mark.label) + 2
        left = min(max(x - wide / 2, 0.0), self.width() - wide)
        if mark.is_outcome:
            half = theme.px(4)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("text"))
            tip = middle - theme.px(4)
            painter.drawPolygon(
                QPolygonF([QPointF(x, tip), QPointF(x - half, tip - 1.4 * half), QPointF(x + half, tip - 1.4 * half)])
            )
        else:
            painter.setPen(QPen(theme.color("muted"), theme.px(2)))
            painter.drawLine(QPointF(x, middle - theme.px(5)), QPointF(x, middle + theme.px(5)))
            if any(left < end and start < left + wide for start, end in occupied_spans):
                return  # the description contains this value too
            occupied_spans.append((left, left + wide))
        painter.setPen(theme.color("text" if mark.is_outcome else "muted"))
        top = 0.0 if mark.is_outcome else middle + theme.px(7)
        painter.drawText(QRectF(left, top, wide, self._line), Qt.AlignmentFlag.AlignCenter, mark.label)
