"""A row of thin bars with a cursor that can be dragged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from decodescope.app.theme.theme import Theme, fill_rect
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessibleValue, AccessibleWidget, Role
from decodescope.app.widgets.plain_text import show_tooltip

MAX_BAR_VALUE = 12.0
"""Value drawn at full height. The scale is fixed so that bars do not jump when a large value comes."""

MIN_BAR_PITCH = 3.0
"""Minimum pixels for a bar with its gap; narrower bars are grouped."""


def height_fraction(value: float) -> float:
    """Return the height of a bar as a fraction: the square root, so that small differences near 0 are visible."""
    return math.sqrt(min(max(value, 0.0), MAX_BAR_VALUE) / MAX_BAR_VALUE)


def group_maxima(values: Sequence[float], count: int) -> list[tuple[int, int, float]]:
    """Return (first, end, largest value) of at most `count` groups of adjacent values."""
    groups = min(max(1, count), len(values))
    edges = [len(values) * n // groups for n in range(groups + 1)] if groups else [0]
    return [(a, b, max(values[a:b])) for a, b in itertools.pairwise(edges)]


class SparklineCurve(NamedTuple):
    """A line over the bars, with one value per bar."""

    name: str
    colour: str
    values: tuple[float | None, ...]
    """Fractions of the full height; None where the line is interrupted."""
    dashed: bool = False


class Sparkline(Themed, QWidget, AccessibleWidget):
    """Bars up to the cursor in the accent colour, the rest faint. `picked(n)`: move the cursor to n."""

    picked = Signal(int)
    accessible_role = Role.Slider

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._values: Sequence[float] = ()
        self._curves: Sequence[SparklineCurve] = ()
        self._tip: Callable[[int], str] = str
        self._cursor = self._slots = self._count = 0
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumWidth(120)

    def set_values(self, values: Sequence[float], cursor: int, slots: int = 0) -> None:
        """Show `values` with the cursor after `cursor` of them, and reserve room for `slots` in total."""
        before, slot = self._cursor, self.bar_pitch
        grown = max(0, len(values) - self._count)
        self._values, self._count, self._cursor, self._slots = values, len(values), cursor, max(slots, len(values))
        if self.bar_pitch != slot or slot < MIN_BAR_PITCH:
            self.update()
        else:
            left = self.cursor_x(min(before, cursor, len(values) - grown)) - slot - 4
            right = self.cursor_x(max(before, cursor, len(values) if grown else 0)) + slot + 4
            self.update(QRectF(left, 0, right - left, self.height()).toAlignedRect())

    def set_curves(self, curves: Sequence[SparklineCurve]) -> None:
        """Draw these curves over the bars."""
        if curves or self._curves:
            self._curves = tuple(curves)
            self.update()

    @property
    def curves(self) -> Sequence[SparklineCurve]:
        """The curves over the bars."""
        return self._curves

    def accessible_value(self) -> AccessibleValue:
        """Return the cursor position; its meaning is in the accessible description."""
        return AccessibleValue(self._cursor, 0, self._count, set_value=lambda place: self._request_cursor(round(place)))

    def sizeHint(self) -> QSize:
        """Return a wide and low size."""
        return QSize(self._theme.px(400), self._theme.px(44))

    @property
    def bar_pitch(self) -> float:
        """Width of one value in pixels; below one pixel if there are very many."""
        return min(self._theme.px(24), (self.width() - 4) / max(1, self._slots))

    def cursor_x(self, count: int) -> float:
        """Return the x coordinate of the cursor after `count` values."""
        return 2 + count * self.bar_pitch

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint base line, bars, curves and cursor."""
        painter = QPainter(self)
        theme, foot = self._theme, self.height() - self._theme.px(5)
        fill_rect(painter, QRectF(0, foot + 2, self.width(), 1), theme.color("line"))
        if self._values:
            self._paint_values(painter, foot, event.rect())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for curve in self._curves:
                self._paint_curve(painter, foot, curve)
            painter.setPen(QPen(theme.color("text"), theme.px(2)))
            x = self.cursor_x(self._cursor)
            painter.drawLine(QPointF(x, theme.px(2)), QPointF(x, self.height() - 2.0))
        if self.hasFocus():
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(theme.color("accent"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)

    def _paint_values(self, painter: QPainter, foot: float, shown: QRect) -> None:
        room, slot = foot - self._theme.px(6), self.bar_pitch
        played: list[QRectF] = []
        rest: list[QRectF] = []
        count = len(self._values) if slot >= MIN_BAR_PITCH else int(len(self._values) * slot / MIN_BAR_PITCH)
        gap = 1.0 if slot < 8 else slot * 0.38
        for first, end, value in group_maxima(self._values, count):
            left, right = 2 + first * slot, 2 + end * slot
            if right < shown.left() or left > shown.right() + 1:
                continue
            tall = max(1.5, room * height_fraction(value))
            bar = QRectF(left + gap / 2, foot - tall, max(1.0, right - left - gap), tall)
            (played if first < self._cursor else rest).append(bar)
        painter.setPen(Qt.PenStyle.NoPen)
        for bars, color in ((played, self._theme.color("accent", 0.85)), (rest, self._theme.color("faint"))):
            if bars:
                painter.setBrush(color)
                painter.drawRects(bars)

    def _paint_curve(self, painter: QPainter, foot: float, curve: SparklineCurve) -> None:
        room, slot = foot - self._theme.px(6), self.bar_pitch
        dots = [
            QPointF(2 + (place + 0.5) * slot, foot - room * min(max(value, 0.0), 1.0))
            for place, value in enumerate(curve.values)
            if value is not None
        ]
        line_style = Qt.PenStyle.DashLine if curve.dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(self._theme.color(curve.colour), self._theme.scale * 1.6, line_style))
        painter.drawPolyline(QPolygonF(dots))

    def _request_cursor_at(self, x: float) -> None:
        self._request_cursor(round((x - 2) / self.bar_pitch) if self.bar_pitch else 0)

    def _request_cursor(self, position: int) -> None:
        if self._values:
            self.picked.emit(min(max(position, 0), len(self._values)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Move the cursor to the pressed position."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._request_cursor_at(event.position().x())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the cursor."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._request_cursor_at(event.position().x())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move with the arrows and Page keys, jump with Home and End."""
        last = len(self._values)
        steps = {Qt.Key.Key_Left: self._cursor - 1, Qt.Key.Key_Right: self._cursor + 1,
                 Qt.Key.Key_PageUp: self._cursor - 10, Qt.Key.Key_PageDown: self._cursor + 10,
                 Qt.Key.Key_Home: 0, Qt.Key.Key_End: last}  # fmt: skip
        if event.key() in steps and last:
            self.picked.emit(min(max(steps[Qt.Key(event.key())], 0), last))
        else:
            super().keyPressEvent(event)

    def index_at(self, x: float) -> int | None:
        """Return the index of the value at a position of the widget; None if there is none."""
        index = int((x - 2) // self.bar_pitch) if self.bar_pitch else -1
        return index if 0 <= index < len(self._values) else None

    def set_tooltip_text(self, tip: Callable[[int], str]) -> None:
        """Set the function that returns the tooltip of value n."""
        self._tip = tip

    def event(self, event: QEvent) -> bool:
        """Show the tooltip of the value under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            index = self.index_at(event.pos().x())
            tip = self._tip(index) if index is not None else ""
            show_tooltip(event.globalPos(), tip, self)
            return True
        return super().event(event)
