"""Decorations of token text: underlines for origin and watermark, influence weights, and arcs to repeated passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from decodescope.app.theme.theme import Theme
from decodescope.app.views.text.column import TokenColumn
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.app.state.layer_queries import InfluenceMap
    from decodescope.core.events import Repeat, TokenChosen, WatermarkSign

_MAX_ARCS = 3
"""Maximum number of arcs; the strongest are drawn."""


def blocked_repeats(token: TokenChosen | None) -> tuple[Repeat, ...]:
    """Return the repeats that a processor penalized at this token, at most `_MAX_ARCS`."""
    all_repeats = (detail.repeats for detail in token.details) if token is not None else ()
    return next((repeats.found[:_MAX_ARCS] for repeats in all_repeats if repeats is not None), ())


def paint_repeats(painter: QPainter, column: TokenColumn, theme: Theme, token: int, repeats: Sequence[Repeat]) -> None:
    """Draw arcs from token `token` to the earlier tokens, and underline both passages with dots."""
    here = column.text.prompt_pieces + token
    for number, repeat in enumerate(repeats):
        there = here - repeat.back
        if 0 <= there < here and (boxes := _boxes(column, there)) and (mine := _boxes(column, here)):
            if not number:
                for end in (here, there):
                    _paint_passage(painter, column, theme, range(max(0, end - repeat.length), end))
            _paint_arc(painter, theme, mine[0], boxes[0], 1.0 if not number else 0.5)


def _boxes(column: TokenColumn, piece: int) -> list[QRectF]:
    """Return the boxes of a piece; pieces of the prompt count too."""
    start, end = column.text.piece_span(piece)
    if start >= column.limit or not column.flow.rows:
        return []
    while start < end - 1 and column.text.text[start].isspace():
        start += 1  # the space before a word may hang at the end of the previous row
    row = column.flow.row_at(start)
    return [column.box(row, left, right) for left, right in column.shaped_row(row).line.spans(start, end)]


def _paint_passage(painter: QPainter, column: TokenColumn, theme: Theme, pieces: range) -> None:
    painter.setPen(QPen(theme.color("refused"), theme.scale * 2, Qt.PenStyle.DotLine))
    for piece in pieces:
        for box in _boxes(column, piece):
            foot = box.top() + column.metrics.baseline + theme.px(3)
            painter.drawLine(QPointF(box.left() + 1, foot), QPointF(box.right() - 1, foot))


def _paint_arc(painter: QPainter, theme: Theme, rect: QRectF, other: QRectF, strength: float) -> None:
    """Draw an arc from the top of one box to the top of the other, higher if they are in different rows."""
    start, end = QPointF(rect.center().x(), rect.top() + 2), QPointF(other.center().x(), other.top() + 2)
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


INFLUENCE_LEGEND = mark("bar: supports the choice   dots: opposes it   thicker = stronger")
ATTENTION_LEGEND = mark("where attention looked, not why it chose   thicker = more attention")
_MIN_FRACTION = 0.02
"""Fraction of the largest weight below which nothing is drawn."""


def paint_influence(
    painter: QPainter, column: TokenColumn, influence: InfluenceMap | None, row: int, theme: Theme
) -> None:
    """Paint the weights of the spans in this row."""
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
    """Paint a tint and a line below the text. The kind and thickness of the line repeat what the colour shows."""
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


ORIGIN_COLOURS = {
    "draft": "kept", "correction": "refused", "bonus": "finished", "target": "muted", "forced": "thinking"
}  # fmt: skip
ORIGIN_LEGEND = mark("━ drafted, accepted   ┅ corrected by the model   ═ bonus   ─ the model's own")


def paint_origin_underline(painter: QPainter, bar: QRectF, origin: str, theme: Theme) -> None:
    """Draw a thick line for a drafted token, a dashed one for a correction, a double one for a bonus, otherwise a thin
    one.
    """
    colour = theme.color(ORIGIN_COLOURS.get(origin, "muted"))
    line = max(1.0, theme.scale)
    if origin == "draft":
        painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), 3 * line), colour)
    elif origin == "bonus":
        for shift in (0.0, 3 * line):
            painter.fillRect(QRectF(bar.left(), bar.top() + shift, bar.width(), 1.3 * line), colour)
    elif origin == "forced":
        paint_forced_underline(painter, bar, theme)
    elif origin == "correction":
        pen = QPen(colour, 3 * line, Qt.PenStyle.CustomDashLine, Qt.PenCapStyle.FlatCap)
        pen.setDashPattern([1.6, 0.9])
        painter.setPen(pen)
        middle = bar.top() + 1.5 * line
        painter.drawLine(QPointF(bar.left(), middle), QPointF(bar.right(), middle))
    else:
        painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), line), colour)


FORCED_LEGEND = mark("┈ written by force")


def paint_forced_underline(painter: QPainter, bar: QRectF, theme: Theme) -> None:
    """Draw a dotted line for a token that a setting wrote."""
    thick = 2 * max(1.0, theme.scale)
    painter.setPen(QPen(theme.color("thinking"), thick, Qt.PenStyle.DotLine, Qt.PenCapStyle.FlatCap))
    middle = bar.top() + thick / 2
    painter.drawLine(QPointF(bar.left(), middle), QPointF(bar.right(), middle))


WATERMARK_LEGEND = mark("━ matches the watermark   ┅ does not   ─ not counted")


def watermark_sign(token: TokenChosen) -> WatermarkSign | None:
    """Return the token's sign of the first watermark that was checked, or None if none was checked."""
    return next((detail.sign for detail in token.details if detail.sign is not None), None)


def paint_watermark_underline(painter: QPainter, bar: QRectF, sign: WatermarkSign | None, theme: Theme) -> None:
    """Paint a thick line above the chance level, a dotted one below it, and a thin one if the token is not counted."""
    line = max(1.0, theme.scale)
    if sign is None or not sign.counts:
        painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), line), theme.color("muted"))
    elif sign.share > sign.expected:
        painter.fillRect(QRectF(bar.left(), bar.top(), bar.width(), 3 * line), theme.color("finished"))
    else:
        painter.setPen(QPen(theme.color("refused"), 2 * line, Qt.PenStyle.DotLine))
        middle = bar.top() + 1.5 * line
        painter.drawLine(QPointF(bar.left(), middle), QPointF(bar.right(), middle))
