"""Painting rows of bars where their layout puts them."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter

from app.theme.theme import Theme
from app.widgets.bars_layout import BarRow, BarsLayout

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def paint_bars(painter: QPainter, layout: BarsLayout) -> None:
    """Head, then the rows."""
    if layout.head:
        _paint_head(painter, layout)
    height, columns, label_width = layout.row_height, layout.columns, layout.label_width
    stacked, room = layout.is_stacked, layout.bar_width
    line, theme = layout.theme.px(23), layout.theme
    for number, row in enumerate(layout.rows):
        top = layout.head_height + number * height
        _paint_words(painter, theme, row, QRectF(0, top, label_width, line), columns)
        if stacked:
            track = QRectF(0, top + line - theme.px(3), layout.width, theme.px(12))
        else:
            track = QRectF(label_width, top, room, line)
        _paint_track(painter, theme, row, track)


def paint_marked_row(painter: QPainter, layout: BarsLayout, number: int) -> None:
    """The ground of a row that is picked, and a stroke at its left edge."""
    theme, top = layout.theme, layout.head_height + number * layout.row_height
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("tint"))
    painter.drawRoundedRect(QRectF(-theme.px(6), top, layout.width + theme.px(12), layout.row_height), 4, 4)


def _paint_head(painter: QPainter, layout: BarsLayout) -> None:
    """Names of the columns, each with a swatch of the bar it belongs to."""
    theme, height, rows = layout.theme, layout.theme.px(16), layout.rows
    painter.setFont(theme.font(11))
    colors = rows[0].colors if rows and len(rows[0].lengths) > 1 else ()
    for n, (text, (left, width)) in enumerate(zip(layout.head, layout.columns, strict=False)):
        painter.setPen(theme.color("muted"))
        painter.drawText(QRectF(left, 0, width, height), _RIGHT, text)
        if n < len(colors):
            x = left + width - QFontMetricsF(painter.font()).horizontalAdvance(text) - theme.px(9)
            swatch = QRectF(x, height / 2 - theme.px(2), theme.px(5), theme.px(5))
            painter.fillRect(swatch, theme.color(colors[n]))


def _paint_words(
    painter: QPainter, theme: Theme, row: BarRow, cell: QRectF, columns: list[tuple[float, float]]
) -> None:
    """The label in its cell, cut short where it is too long, and the figures in their columns."""
    font = theme.font(13, 600 if row.strong else 400, tabular=True)
    painter.setFont(font)
    painter.setPen(theme.color("accent" if row.strong else "muted" if row.faint else "text"))
    shown = QFontMetricsF(font).elidedText(row.label, Qt.TextElideMode.ElideRight, cell.width() - theme.px(6))
    painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # a token is read in its own direction
    painter.drawText(cell, Qt.AlignmentFlag.AlignVCenter, shown)
    for text, (left, width) in zip(row.figures, columns, strict=False):
        painter.drawText(QRectF(left, cell.top(), width, cell.height()), _RIGHT, text)


def _paint_track(painter: QPainter, theme: Theme, row: BarRow, cell: QRectF) -> None:
    """The track, the hints on it, and the bars."""
    thick, count = theme.px(5), max(1, len(row.lengths))
    block = thick * count + (count - 1)
    top = cell.top() + (cell.height() - block) / 2
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("line", 0.5))
    painter.drawRoundedRect(QRectF(cell.left(), top, cell.width(), block), 2, 2)
    for n, (length, color) in enumerate(zip(row.hints, row.colors, strict=False)):
        stroke = theme.px(1)
        middle = top + n * (thick + 1) + (thick - stroke) / 2
        painter.fillRect(QRectF(cell.left(), middle, cell.width() * length, stroke), theme.color(color))
    for n, (length, color) in enumerate(zip(row.lengths, row.colors, strict=False)):
        width = cell.width() * min(max(length, 0.0), 1.0)
        if width > 0:
            painter.setBrush(theme.color(color))
            painter.drawRoundedRect(QRectF(cell.left(), top + n * (thick + 1), max(width, 1.5), thick), 2, 2)
