"""Painting of token rows: underlines by score, the tint of the newest token, the outline of the selected one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from decodescope.app.state.token_stats import band
from decodescope.app.theme.theme import Theme
from decodescope.app.views.text.column import ShapedRow, TokenColumn, TokenSegments
from decodescope.app.views.text.token_decorations import (
    paint_forced_underline,
    paint_influence,
    paint_origin_underline,
    paint_watermark_underline,
    watermark_sign,
)
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.app.state.layer_queries import InfluenceMap
    from decodescope.core.events import Repeat, TokenChosen

COLOURINGS: dict[str, tuple[str, str, str]] = {
    "probability": (mark("Probability"), mark("unlikely"), mark("certain")),
    "rank": (mark("Rank"), mark("low rank"), mark("first choice")),
    "entropy": (mark("Entropy"), mark("uncertain"), mark("certain")),
    "band": (mark("Rank in bands"), "", ""),
    "origin": (mark("Draft or model"), "", ""),
    "watermark": (mark("Watermark"), "", ""),
    "difference": (mark("Comparison model"), mark("differ"), mark("agree")),
    "influence": (mark("Influence on this step"), "", ""),
    "none": (mark("None"), "", ""),
}
"""Name: (title, label of the orange end, label of the blue end)."""
_MAX_RANK = 100.0


def _probability_score(token: TokenChosen) -> float:
    return token.raw_probability


def _rank_score(token: TokenChosen) -> float:
    """Return 1 for the model's first choice, falling logarithmically to 0 at rank 100."""
    if not token.rank:
        return math.nan
    return max(0.0, 1.0 - math.log(max(1, token.rank)) / math.log(_MAX_RANK))


def _band_score(token: TokenChosen) -> float:
    """Return the score of a GLTR rank band: four even steps from 1 to 0."""
    return BAND_SCORES[band(token.rank)] if token.rank else math.nan


BAND_SCORES = (1.0, 0.62, 0.32, 0.0)


def agreement_score(bits: float) -> float:
    """Return 1 for identical distributions and 0.5 for distributions that differ by one bit."""
    return 1 / (1 + max(bits, 0.0))


def _entropy_score(token: TokenChosen) -> float:
    """Return 1 / perplexity of the step: 1 if only one token was possible, 0.5 for two equally likely tokens."""
    return math.exp(-token.entropy)


SCORES: dict[str, Callable[[TokenChosen], float]] = {
    "probability": _probability_score,
    "rank": _rank_score,
    "entropy": _entropy_score,
    "band": _band_score,
}
"""Certainty of the model about a token, 0 to 1, by colouring; NaN if the value is unknown."""


@plain()
class PaintOptions:
    """Options for drawing besides the text."""

    theme: Theme
    colouring: str = "probability"
    whitespace: bool = False
    selected: int | None = None
    newest: int | None = None
    hovered: int | None = None
    selection: tuple[int, int] = (0, 0)
    lead_changes: frozenset[int] = frozenset()
    """Tokens at which the best sequence of a beam search changed."""
    branch_position: int | None = None
    """For a branch: number of prefix tokens shared with its parent."""
    repeats: tuple[Repeat, ...] = ()
    """Passages that the selected token would have repeated."""
    influence: InfluenceMap | None = None
    """Influence of prompt and text on the inspected step, by token position."""
    divergences: Mapping[int, float] = field(default_factory=dict)
    """With a comparison model: divergence in bits, by token position."""

    def score(self, token: TokenChosen) -> float:
        """Return the score of a token, 0 to 1: the model's certainty, or the agreement of the two models."""
        if self.colouring == "difference":
            return agreement_score(self.divergences.get(token.step, 0.0))
        return SCORES.get(self.colouring, _probability_score)(token)


def underline_thickness(score: float, scale: float = 1.0) -> float:
    """Return the thickness of an underline in pixels. Less certain tokens get thicker lines, as a second cue beside
    colour.
    """
    if math.isnan(score):
        return 2.0 * scale
    return (2.0 + 3.5 * (1.0 - min(max(score, 0.0), 1.0))) * scale


def paint_rows(painter: QPainter, column: TokenColumn, options: PaintOptions, top: float, bottom: float) -> None:
    """Paint the rows of `column` between two y positions of the page."""
    first = max(0, int((top - column.top) // column.metrics.row))
    last = min(column.drawn_rows, int((bottom - column.top) // column.metrics.row) + 1)
    for row in range(first, last):
        _paint_row(painter, column, options, row, column.shaped_row(row))


def _paint_row(painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow) -> None:
    for token_mark in shaped_row.marks:
        _paint_token_background(painter, column, options, row, token_mark)
    _paint_control_tokens(painter, column, options.theme, row, shaped_row)
    _paint_selection(painter, column, options, row, shaped_row)
    if options.colouring == "origin":
        _paint_origin_underlines(painter, column, options, row, shaped_row)
    elif options.colouring == "influence":
        paint_influence(painter, column, options.influence, row, options.theme)
    elif options.colouring == "watermark":
        _paint_watermark_underlines(painter, column, options, row, shaped_row)
    elif options.colouring != "none":
        _paint_underlines(painter, column, options, row, shaped_row)
    _paint_ticks(painter, column, options, row, shaped_row)
    _paint_token_dashes(painter, column, options, row, shaped_row)
    _paint_lead_changes(painter, column, options, row, shaped_row)
    _paint_branch(painter, column, options, row, shaped_row)
    _paint_outline(painter, column, options, row, shaped_row)
    y = column.row_top(row) + column.metrics.baseline
    painter.setPen(options.theme.color("text"))
    shaped_row.line.layout.draw(painter, QPointF(column.left, y - shaped_row.line.ascent))
    if options.whitespace:
        _paint_whitespace(painter, column, options, row, shaped_row)


def _paint_token_background(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, token_mark: TokenSegments
) -> None:
    """Paint the tint of the newest token or the shade of the hovered one."""
    index = token_mark.piece - column.text.prompt_pieces
    if index != options.newest and index != options.hovered:
        return
    radius = options.theme.px(4)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(options.theme.color("tint" if index == options.newest else "hover"))
    for left, right in column.mark_spans(token_mark):
        painter.drawRoundedRect(column.box(row, left, right), radius, radius)


def _paint_control_tokens(
    painter: QPainter, column: TokenColumn, theme: Theme, row: int, shaped_row: ShapedRow
) -> None:
    """Paint outlines around control tokens, between the row's top edge and its underlines."""
    metrics = column.metrics
    painter.setBrush(theme.color("field"))
    painter.setPen(QPen(theme.color("faint"), 1))
    for left, right in shaped_row.pills:
        pill = column.box(row, left, right)
        pill.adjust(0.5, theme.px(3) + 0.5, -0.5, metrics.underline - metrics.row - 0.5)
        painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2)


def _paint_selection(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    start, end = options.selection[0], min(options.selection[1], column.limit)
    if start >= end:
        return
    spans = shaped_row.line.spans(start, end)
    if shaped_row.line.ends_paragraph and start < shaped_row.line.end <= end:
        spans.append((shaped_row.line.text_end, shaped_row.line.text_end + column.metrics.newline))
    for left, right in spans:
        painter.fillRect(column.box(row, left, right), options.theme.color("selection"))


def _token_bars(column: TokenColumn, row: int, shaped_row: ShapedRow) -> Iterator[tuple[TokenChosen, QRectF]]:
    """Yield each generated token of a row and the bars, of height 0, below its text."""
    tokens, before = column.text.tokens, column.text.prompt_pieces
    top = column.row_top(row) + column.metrics.underline
    for token_mark in shaped_row.marks:
        for left, right in token_mark.spans:
            yield tokens[token_mark.piece - before], QRectF(column.left + left, top, max(1.5, right - left - 1.5), 0)


def _paint_underlines(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    for token, bar in _token_bars(column, row, shaped_row):
        if token.origin == "forced":
            paint_forced_underline(painter, bar, options.theme)
            continue
        certainty = options.score(token)
        bar.setHeight(underline_thickness(certainty, options.theme.scale))
        painter.fillRect(bar, options.theme.ramp(certainty))


def _paint_origin_underlines(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    for token, bar in _token_bars(column, row, shaped_row):
        paint_origin_underline(painter, bar, token.origin, options.theme)


def _paint_watermark_underlines(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    for token, bar in _token_bars(column, row, shaped_row):
        paint_watermark_underline(painter, bar, watermark_sign(token), options.theme)


def _paint_ticks(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    """Paint a small wedge for each token whose character is incomplete."""
    foot, half = column.row_top(row) + column.metrics.underline, column.metrics.tick / 2
    for token_mark in shaped_row.marks:
        if token_mark.tick is None:
            continue
        x = column.left + token_mark.tick + half
        painter.setBrush(
            options.theme.ramp(options.score(column.text.tokens[token_mark.piece - column.text.prompt_pieces]))
        )
        painter.setPen(Qt.PenStyle.NoPen)
        wedge = [QPointF(x, foot - 2 * half), QPointF(x + half, foot), QPointF(x - half, foot)]
        painter.drawPolygon(QPolygonF(wedge))


def _paint_token_dashes(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    """Paint one dash per token below each prompt character that consists of several tokens."""
    theme, gap = options.theme, options.theme.px(2)
    top = column.row_top(row) + column.metrics.underline
    for left, right, count in shaped_row.groups:
        pitch = max((right - left + gap) / count, gap + theme.px(3))
        first = (left + right - count * pitch + gap) / 2
        for part in range(count):
            dash = QRectF(column.left + first + part * pitch, top, pitch - gap, theme.px(2))
            painter.fillRect(dash, theme.color("faint"))


def _paint_lead_changes(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    """Paint a small wedge above tokens at which the best sequence of the search changed."""
    top, half = column.row_top(row) + options.theme.px(1), options.theme.px(4)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(options.theme.color("best"))
    for token_mark in shaped_row.marks:
        if (
            token_mark.starts_here
            and token_mark.spans
            and token_mark.piece - column.text.prompt_pieces in options.lead_changes
        ):
            x = column.left + token_mark.spans[0][0] + half
            painter.drawPolygon(QPolygonF([QPointF(x - half, top), QPointF(x + half, top), QPointF(x, top + half)]))


def _paint_branch(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    """Mark where a branch leaves its parent's text: a vertical line, and dots below the replaced tokens."""
    text, line, theme = column.text, shaped_row.line, options.theme
    first = text.input_pieces + options.branch_position if options.branch_position is not None else text.prompt_pieces
    if first >= text.prompt_pieces:
        return
    start, end = text.piece_span(first)[0], text.piece_span(text.prompt_pieces - 1)[1]
    while start < end - 1 and text.text[start].isspace():
        start += 1  # the space before a word may hang at the end of the previous row
    spans, colour = line.spans(start, end), theme.color("accent")
    foot = column.row_top(row) + column.metrics.underline + theme.px(1)
    painter.setPen(QPen(colour, theme.px(2), Qt.PenStyle.DotLine))
    for left, right in spans:
        painter.drawLine(QPointF(column.left + left + 1, foot), QPointF(column.left + right - 1, foot))
    if spans and start >= line.start:
        x, top = column.left + line.x(start), column.row_top(row)
        painter.setPen(QPen(colour, theme.scale * 1.5))
        painter.drawLine(QPointF(x, top + theme.px(4)), QPointF(x, top + column.metrics.row - theme.px(3)))
        painter.setBrush(colour)
        painter.drawEllipse(QPointF(x, top + theme.px(4)), theme.scale * 2.5, theme.scale * 2.5)


def _paint_whitespace(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    """Paint ␣ in spaces, ↵ at line breaks and → at tabs, over the text so that nothing moves."""
    line, limit = shaped_row.line, column.limit
    base = column.row_top(row) + column.metrics.baseline
    painter.setPen(QPen(options.theme.color("muted"), max(1.0, options.theme.scale)))
    painter.setFont(options.theme.font(13))
    for place, character in enumerate(line.text):
        offset = line.start + place
        if offset < limit and character in " \u00a0\t":
            for left, right in line.spans(offset, offset + 1):
                _paint_space(painter, character, column.left + left, column.left + right, base)
    if line.ends_paragraph and line.end <= limit:
        edge = column.left + line.text_end
        x = edge - column.metrics.newline if line.rtl else edge + 1
        painter.drawText(QPointF(x, base), "↵")


def _paint_space(painter: QPainter, character: str, left: float, right: float, base: float) -> None:
    if character == "\t":
        painter.drawText(QPointF(left + 2, base), "→")
        return
    left, right, rise = left + 1, right - 0.5, 3.5
    painter.drawPolyline(
        [QPointF(left, base - rise), QPointF(left, base), QPointF(right, base), QPointF(right, base - rise)]
    )


def _paint_outline(
    painter: QPainter, column: TokenColumn, options: PaintOptions, row: int, shaped_row: ShapedRow
) -> None:
    """Paint the outline of the selected token, inside its cell and below the letters, so that it cuts none of them."""
    if options.selected is None:
        return
    piece, pen = options.selected + column.text.prompt_pieces, max(1.0, 1.5 * options.theme.scale)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(options.theme.color("accent"), pen))
    for token_mark in shaped_row.marks:
        if token_mark.piece == piece:
            for left, right in column.mark_spans(token_mark):
                inside = column.box(row, left, right).adjusted(pen / 2, 0, -pen / 2, 0)
                painter.drawRoundedRect(inside, options.theme.px(5), options.theme.px(5))
