"""Rows of a list that are drawn, not made of widgets: a long one is laid out at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QWidget

from app.theme.theme import Theme

if TYPE_CHECKING:  # its enums take longer than the row
    from PySide6.QtWidgets import QStyleOptionViewItem

Index = QModelIndex | QPersistentModelIndex
ABOVE, BETWEEN = 8, 2
"""Pixels over the first line, as spacing of the theme, and from line to line."""


class ThemedDelegate(QStyledItemDelegate):
    """Draws in the colours of a theme, and as Qt does before it has one."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme: Theme | None = None


class LinesDelegate(ThemedDelegate):
    """Lines of text, as many and as high in every row."""

    def line_fonts(self, theme: Theme) -> tuple[QFont, ...]:
        """One for each line, from the top."""
        raise NotImplementedError

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        if self.theme is None:
            return super().sizeHint(option, index)
        fonts = self.line_fonts(self.theme)
        lines = sum(QFontMetrics(font).lineSpacing() for font in fonts)
        return QSize(0, lines + 2 * self.theme.space(ABOVE) + (len(fonts) - 1) * self.theme.px(BETWEEN) + 1)


def paint_line(painter: QPainter, room: QRect, font: QFont, color: QColor, text: str) -> None:
    """One line, cut where the room ends."""
    painter.setFont(font)
    painter.setPen(color)
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room.width())
    painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # what was written is read in its own direction
    painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
