"""Arcs over the text: from a token to the earlier place whose continuation it would have repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from app.theme.theme import Theme
from app.views.text.column import TokenColumn

if TYPE_CHECKING:
    from core.events import Repeat, TokenChosen

_MAX_ARCS = 3
"""Arcs at once: the heaviest ones."""


def blocked_repeats(token: TokenChosen | None) -> tuple[Repeat, ...]:
    """What a stage held back when it was chosen, for it would have repeated an earlier passage."""
    all_repeats = (detail.repeats for detail in token.details) if token is not None else ()
    return next((repeats.found[:_MAX_ARCS] for repeats in all_repeats if repeats is not None), ())


def paint_repeats(painter: QPainter, column: TokenColumn, theme: Theme, token: int, repeats: Sequence[Repeat]) -> None:
    """Arcs from token `token` to where those tokens stood; the passages at both ends are underlined in dots."""
    here = column.text.prompt_pieces + token
    for number, repeat in enumerate(repeats):
        there = here - repeat.back
        if 0 <= there < here and (boxes := _boxes(column, there)) and (mine := _boxes(column, here)):
            if not number:
                for end in (here, there):
                    _paint_passage(painter, column, theme, range(max(0, end - repeat.length), end))
            _paint_arc(painter, theme, mine[0], boxes[0], 1.0 if not number else 0.5)


def _boxes(column: TokenColumn, piece: int) -> list[QRectF]:
    """Where a piece is drawn, the prompt's included."""
    start, end = column.text.piece_span(piece)
    if start >= column.limit or not column.flow.rows:
        return []
    while start < end - 1 and column.text.text[start].isspace():
        start += 1  # the space before a word may hang at the end of the row above
    row = column.flow.row_at(start)
    return [column.box(row, left, right) for left, right in column.shaped_row(row).line.spans(start, end)]


def _paint_passage(painter: QPainter, column: TokenColumn, theme: Theme, pieces: range) -> None:
    painter.setPen(QPen(theme.color("refused"), theme.scale * 2, Qt.PenStyle.DotLine))
    for piece in pieces:
        for box in _boxes(column, piece):
            foot = box.top() + column.metrics.baseline + theme.px(3)
            painter.drawLine(QPointF(box.left() + 1, foot), QPointF(box.right() - 1, foot))


def _paint_arc(painter: QPainter, theme: Theme, mine: QRectF, other: QRectF, strength: float) -> None:
    """From the top of one box to that of the other: it rises where both stand in one row, swings where not."""
    start, end = QPointF(mine.center().x(), mine.top() + 2), QPointF(other.center().x(), other.top() + 2)
    rise = theme.px(22) if abs(start.y() - end.y()) < 1 else theme.px(30)
    path = QPainterPath(start)
    path.cubicTo(start - QPointF(0, rise), end - QPointF(0, rise), end)
    head = theme.px(4)
    path.moveTo(end + QPointF(-head, -head * 1.2))
    path.lineTo(end)
    path.lineTo(end + QPointF(head, -head * 1.2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.color("refused", strength), theme.scale * 1.8))
    painter.drawPath(path)
    painter.setPen(QPen(theme.color("refused", strength), theme.scale * 1.4))
    painter.drawRoundedRect(other, theme.px(4), theme.px(4))
