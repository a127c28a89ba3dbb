"""Rows made ready to paint: where each token's mark stands, what is a control token, what is past the cursor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from PySide6.QtGui import QColor, QTextLayout

from app.theme.theme import Theme
from app.views.text.line_flow import LineFlow, ShapedLine
from app.views.text.token_text import TokenText
from core.lightweight_dataclass import plain


class TextMetrics(NamedTuple):
    """Heights and widths in pixels at the theme's scale."""

    row: int
    baseline: int
    underline: int
    newline: int
    tick: int

    @classmethod
    def for_theme(cls, theme: Theme) -> TextMetrics:
        """Metrics of generated text set at 18 px with generous leading."""
        return cls(theme.px(35), theme.px(22), theme.px(28), theme.px(10), theme.px(4))


class TokenMark(NamedTuple):
    """A piece in one row: the stretches it covers; `tick` when it has no character of its own yet."""

    piece: int
    spans: tuple[tuple[float, float], ...]
    tick: float | None = None
    starts_here: bool = True
    """Whether the piece begins in this row."""


@plain()
class ShapedRow:
    """A shaped row and its marks."""

    line: ShapedLine
    marks: list[TokenMark]
    pills: list[tuple[float, float]]
    """Stretches of control tokens, the prompt's included."""
    groups: list[tuple[float, float, int]]
    """Stretches of the prompt's characters that are made of several tokens, and of how many."""


class RowShaper(NamedTuple):
    """Shapes rows of one column as it is now: its text up to `limit`, broken into rows by `flow`."""

    theme: Theme
    metrics: TextMetrics
    text: TokenText
    flow: LineFlow
    limit: int

    def shape(self, index: int) -> ShapedRow:
        """That row of the flow."""
        row = self.flow.rows[index]
        line = ShapedLine(self.text.text, row, self.flow, self._formats(row.start, row.end))
        drawn = [piece for piece in self._pieces_in(row.start, row.end) if self._is_drawn(piece)]
        marks = [mark for piece in drawn if (mark := self._mark(piece, line, row.end))]
        return ShapedRow(line, marks, self._pills(line), self._groups(line))

    def _pieces_in(self, start: int, end: int) -> Iterator[int]:
        """The pieces of a row; of many without text in one place, those whose ticks have room in it."""
        pieces = self.text.pieces_in(start, end)
        room = self.flow.width / self._tick_step
        piece = pieces.start
        while piece < pieces.stop:
            yield piece
            last = self.text.last_at_same_start(piece)
            piece = last if piece < last and self.text.empty_before(piece) > room else piece + 1

    @property
    def _tick_step(self) -> float:
        """Pixels from one tick to the next."""
        return self.metrics.tick * 1.5

    def _is_drawn(self, piece: int) -> bool:
        start, end = self.text.piece_span(piece)
        return piece >= self.text.prompt_pieces and (start < self.limit or start == end == self.limit)

    def _formats(self, start: int, end: int) -> list[QTextLayout.FormatRange]:
        """Colours of a row: the prompt and control tokens muted, what is past the limit clear."""
        text, muted = self.text, self.theme.color("muted")
        ranges = [(0, text.prompt_end, muted), (text.tail_start, len(text.text), muted)]
        ranges += [(*text.piece_span(piece), muted) for piece in self._pieces_in(start, end) if piece in text.specials]
        ranges.append((self.limit, len(text.text), QColor(0, 0, 0, 0)))
        utf16 = _Utf16Positions(text.text[start:end])
        return [_format(utf16, max(a, start) - start, min(b, end) - start, color)
                for a, b, color in ranges if min(b, end) > max(a, start)]  # fmt: skip

    def _pills(self, line: ShapedLine) -> list[tuple[float, float]]:
        text = self.text
        pieces = [piece for piece in self._pieces_in(line.start, line.end) if piece in text.specials]
        spans = [text.piece_span(piece) for piece in pieces if text.starts[piece] < self.limit]
        return [stretch for start, end in spans for stretch in line.spans(start + 1, end - 1)]

    def _groups(self, line: ShapedLine) -> list[tuple[float, float, int]]:
        groups = self.text.multi_token_characters(line.start, line.end)
        return [(*line.spans(start, start + 1)[0], count) for start, count in groups]

    def _mark(self, piece: int, line: ShapedLine, row_end: int) -> TokenMark | None:
        start, end = self.text.piece_span(piece)
        if start == end:
            return TokenMark(piece, (), tick=self._tick(piece, line))
        if end > row_end and start < row_end and not self.text.text[start:row_end].strip(" \t\u2009"):
            return None  # only the space that hangs at the end of the row; the word is in the next one
        spans = [(min(a, self.flow.width), min(b, self.flow.width + 4)) for a, b in line.spans(start, end)]
        if line.ends_paragraph and start < row_end <= end:
            spans = _add_newline_span(spans, line, self.metrics.newline)
        return TokenMark(piece, tuple(spans), starts_here=start >= line.start) if spans else None

    def _tick(self, piece: int, line: ShapedLine) -> float:
        """Where the tick of an unfinished character stands; several stand side by side."""
        return line.x(self.text.starts[piece]) + self.text.empty_before(piece) * self._tick_step


class _Utf16Positions:
    """UTF-16 positions of a short text."""

    def __init__(self, text: str) -> None:
        self._text, self._plain = text, text.isascii()

    def __getitem__(self, offset: int) -> int:
        return offset if self._plain else len(self._text[:offset].encode("utf-16-le")) // 2


def _format(utf16: _Utf16Positions, start: int, end: int, color: QColor) -> QTextLayout.FormatRange:
    from PySide6.QtGui import QTextCharFormat  # not before there is a text

    style = QTextCharFormat()
    style.setForeground(color)
    result = QTextLayout.FormatRange()
    result.start, result.length, result.format = utf16[start], utf16[end] - utf16[start], style
    return result


def _add_newline_span(spans: list[tuple[float, float]], line: ShapedLine, width: float) -> list[tuple[float, float]]:
    """A line break gets a little room of its own, so that it can be seen and clicked."""
    edge = line.text_end
    cell = (edge - width, edge) if line.rtl else (edge, edge + width)
    touching = [n for n, (left, right) in enumerate(spans) if abs(right - cell[0]) < 1 or abs(left - cell[1]) < 1]
    if not touching:
        return [*spans, cell]
    left, right = spans.pop(touching[-1])
    return [*spans, (min(left, cell[0]), max(right, cell[1]))]
