"""A small chart of columns: a value each, a label below, one of them marked, a line where one is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.theme.theme import Theme, theme_for


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `tip` says it in words."""

    value: float
    label: str = ""
    tip: str = ""


class Columns(QWidget):
    """Painted columns, as wide as there is room for; `top` is the value that fills the height."""

    def __init__(self, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme_for("light")
        self._columns: tuple[Column, ...] = ()
        self._top, self._level, self._marked = 1.0, 0.0, -1
        self.setAccessibleName(label)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    def set_columns(self, columns: Sequence[Column], top: float = 0.0, level: float = 0.0, marked: int = -1) -> None:
        """Show these; `top` 0 takes the largest value; `level` > 0 draws a line there."""
        self._columns = tuple(columns)
        self._top = top or max((column.value for column in columns), default=1.0) or 1.0
        self._level, self._marked = level, marked
        self.setAccessibleDescription("; ".join(column.tip for column in columns if column.tip))
        self.update()

    def sizeHint(self) -> QSize:
        """Room for a dozen columns."""
        return QSize(self._theme.px(180), self._theme.px(88))

    def minimumSizeHint(self) -> QSize:
        """As small as it still says something."""
        return QSize(self._theme.px(80), self._theme.px(56))

    def _area(self) -> QRectF:
        below = QFontMetricsF(self._theme.font(10)).height() + self._theme.px(3)
        return QRectF(self.rect()).adjusted(0, self._theme.px(2), 0, -below)

    def _column_rect(self, index: int) -> QRectF:
        area = self._area()
        pitch = min(area.width() / max(len(self._columns), 1), self._theme.px(44))
        gap = min(self._theme.px(4), pitch * 0.25)
        height = max(1.0, area.height() * min(self._columns[index].value / self._top, 1.0))
        return QRectF(area.left() + index * pitch, area.bottom() - height, pitch - gap, height)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Columns, labels that fit, the line."""
        painter, theme, area = QPainter(self), self._theme, self._area()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(10, tabular=True))
        widest = QFontMetricsF(painter.font()).horizontalAdvance("00")
        every = 1
        if self._columns and self._column_rect(0).width() < widest:
            every = 1 + int(widest / max(self._column_rect(0).width(), 1.0))
        for index, column in enumerate(self._columns):
            rect = self._column_rect(index)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent", 1.0 if index == self._marked else 0.75))
            painter.drawRoundedRect(rect, 2, 2)
            if index % every == 0:
                painter.setPen(theme.color("muted"))
                slot = QRectF(rect.left() - 8, area.bottom() + theme.px(3), rect.width() + 16, self.height())
                painter.drawText(slot, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop), column.label)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if 0 < self._level <= self._top:
            height = area.bottom() - area.height() * self._level / self._top
            painter.setPen(QPen(theme.color("muted"), 1, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(area.left(), height), QPointF(area.right(), height))
        painter.end()

    def event(self, event: QEvent) -> bool:
        """The tip of the column under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            found = next((i for i in range(len(self._columns)) if self._slot(i).contains(QPointF(event.pos()))), None)
            QToolTip.showText(event.globalPos(), self._columns[found].tip if found is not None else "", self)
            return True
        return super().event(event)

    def _slot(self, index: int) -> QRectF:
        rect = self._column_rect(index)
        return QRectF(rect.left(), 0, rect.width(), self.height())
