"""Draws on the text what a step hangs on: bars below what helps the choice, dots below what hinders it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.theme.theme import Theme
from app.views.text.column import TokenColumn
from resources.language import mark

if TYPE_CHECKING:
    from app.state.layer_queries import InfluenceMap

INFLUENCE_LEGEND = mark("bar: without it the choice is less likely   dots: likelier   the thicker, the more")
ATTENTION_LEGEND = mark("where attention looked, not why it chose   the thicker, the more")
_MIN_FRACTION = 0.02
"""Share of the largest weight from which on anything is drawn."""


def paint_influence(
    painter: QPainter, column: TokenColumn, influence: InfluenceMap | None, row: int, theme: Theme
) -> None:
    """The weights of the parts that stand in this row of the text."""
    if influence is None or not influence.weights:
        return
    text, line, largest = column.text, column.shaped_row(row).line, influence.largest or 1.0
    foot = column.row_top(row) + column.metrics.underline
    for start, stop, weight in influence.weights:
        if stop > len(text.starts) or abs(weight) < _MIN_FRACTION * largest:
            continue
        begin, end = text.piece_span(start)[0], text.piece_span(stop - 1)[1]
        while begin < end - 1 and text.text[begin].isspace():
            begin += 1
        for left, right in line.spans(begin, min(end, column.limit)):
            box = QRectF(column.left + left, column.row_top(row), right - left, foot - column.row_top(row))
            _paint_weight(painter, box, weight / largest, theme)


def _paint_weight(painter: QPainter, box: QRectF, fraction: float, theme: Theme) -> None:
    """A tint behind the words and a mark below them, whose kind and thickness tell what the colour tells."""
    name = "accent" if fraction > 0 else "refused"
    tint = QColor(theme.color(name))
    tint.setAlphaF(0.06 + 0.20 * abs(fraction))
    painter.fillRect(box.adjusted(0, theme.px(4), 0, 0), tint)
    thick = theme.scale * (1.5 + 3.5 * abs(fraction))
    if fraction > 0:
        painter.fillRect(QRectF(box.left(), box.bottom(), max(1.5, box.width() - 1.5), thick), theme.color(name))
        return
    painter.setPen(QPen(theme.color(name), thick, Qt.PenStyle.DotLine, Qt.PenCapStyle.RoundCap))
    y = box.bottom() + thick / 2
    painter.drawLine(QPointF(box.left() + thick / 2, y), QPointF(box.right() - thick / 2, y))
