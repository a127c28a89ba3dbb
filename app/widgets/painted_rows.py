"""List rows painted by delegates instead of widgets, so that long lists are laid out at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QWidget

from decodescope.app.theme.theme import Theme

if TYPE_CHECKING:  # its enums take long to import
    from PySide6.QtWidgets import QStyleOptionViewItem

Index = QModelIndex | QPersistentModelIndex
ABOVE, BETWEEN = 8, 2
"""Spacing above the first line, and between lines, in pixels at 100 %."""


class ThemedDelegate(QStyledItemDelegate):
    """Delegate that paints in the theme's colours, or as Qt does before a theme is set."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme: Theme | None = None


class LinesDelegate(ThemedDelegate):
    """Lines of text; every row has the same number and height of lines."""

    def line_fonts(self, theme: Theme) -> tuple[QFont, ...]:
        """Return one font per line, from the top."""
        raise NotImplementedError

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        if self.theme is None:
            return super().sizeHint(option, index)
        fonts = self.line_fonts(self.theme)
        lines = sum(QFontMetrics(font).lineSpacing() for font in fonts)
        return QSize(0, lines + 2 * self.theme.space(ABOVE) + (len(fonts) - 1) * self.theme.px(BETWEEN) + 1)


def paint_line(painter: QPainter, rect: QRect, font: QFont, color: QColor, text: str) -> None:
    """Paint one elided line."""
    painter.setFont(font)
    painter.setPen(color)
    shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
    painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # draw each text in its own direction
    painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
