"""One column of tokens: its text, its shaped rows, and the position of each token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QTextLayout

from decodescope.app.theme.theme import Theme, tab_distance
from decodescope.app.views.text.line_flow import LineFlow, ShapedLine
from decodescope.app.views.text.token_text import TokenText
from decodescope.core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from decodescope.core.events import PromptToken, TokenChosen


class TextMetrics(NamedTuple):
    """Heights and widths in pixels at the theme's scale."""

    row: int
    baseline: int
    underline: int
    newline: int
    tick: int

    @classmethod
    def for_theme(cls, theme: Theme) -> TextMetrics:
        """Return the metrics of generated text, set at 18 px with generous leading."""
        return cls(theme.px(35), theme.px(22), theme.px(28), theme.px(10), theme.px(4))


class TokenSegments(NamedTuple):
    """A piece in one row: the spans it covers, or `tick` if it has no character of its own yet."""

    piece: int
    spans: tuple[tuple[float, float], ...]
    tick: float | None = None
    starts_here: bool = True
    """Whether the piece begins in this row."""


@plain()
class ShapedRow:
    """A shaped row and its marks."""

    line: ShapedLine
    marks: list[TokenSegments]
    pills: list[tuple[float, float]]
    """Spans of control tokens, including the prompt's."""
    groups: list[tuple[float, float, int]]
    """Spans of prompt characters that consist of several tokens, with the token count."""


class RowShaper(NamedTuple):
    """Shapes rows of a column: its text up to `limit`, broken into rows by `flow`."""

    theme: Theme
    metrics: TextMetrics
    text: TokenText
    flow: LineFlow
    limit: int
    thinking: tuple[tuple[int, int], ...] = ()
    """Ranges [start, stop) of the generated tokens that are thinking."""

    def shape(self, index: int) -> ShapedRow:
        """Return a row of the flow, shaped."""
        row = self.flow.rows[index]
        line = ShapedLine(self.text.text, row, self.flow, self._formats(row.start, row.end))
        drawn = [piece for piece in self._pieces_in(row.start, row.end) if self._is_drawn(piece)]
        marks = [mark for piece in drawn if (mark := self._mark(piece, line, row.end))]
        return ShapedRow(line, marks, self._pills(line), self._groups(line))

    def _pieces_in(self, start: int, end: int) -> Iterator[int]:
        """Yield the pieces of a row. Of many empty pieces at one position, yield only those whose ticks fit."""
        pieces = self.text.pieces_in(start, end)
        room = self.flow.width / self._tick_step
        piece = pieces.start
        while piece < pieces.stop:
            yield piece
            last = self.text.last_at_same_start(piece)
            piece = last if piece < last and self.text.empty_before(piece) > room else piece + 1

    @property
    def _tick_step(self) -> float:
        """Distance in pixels between ticks."""
        return self.metrics.tick * 1.5

    def _is_drawn(self, piece: int) -> bool:
        start, end = self.text.piece_span(piece)
        return piece >= self.text.prompt_pieces and (start < self.limit or start == end == self.limit)

    def _formats(self, start: int, end: int) -> list[QTextLayout.FormatRange]:
        """Return the colours of a row: prompt and control tokens muted, text after the limit transparent."""
        text, muted = self.text, self.theme.color("muted")
        ranges = [(0, text.prompt_end, muted), (text.tail_start, len(text.text), muted)]
        ranges += [(*self._span_of(first, stop), self.theme.color("thinking")) for first, stop in self.thinking]
        ranges += [(*text.piece_span(piece), muted) for piece in self._pieces_in(start, end) if piece in text.specials]
        ranges.append((self.limit, len(text.text), QColor(0, 0, 0, 0)))
        utf16 = _Utf16Positions(text.text[start:end])
        return [_format(utf16, max(a, start) - start, min(b, end) - start, color)
                for a, b, color in ranges if min(b, end) > max(a, start)]  # fmt: skip

    def _span_of(self, first: int, stop: int) -> tuple[int, int]:
        """Return the characters of a range of generated tokens."""
        return self.text.end_of_tokens(first), self.text.end_of_tokens(stop)

    def _pills(self, line: ShapedLine) -> list[tuple[float, float]]:
        text = self.text
        pieces = [piece for piece in self._pieces_in(line.start, line.end) if piece in text.specials]
        spans = [text.piece_span(piece) for piece in pieces if text.starts[piece] < self.limit]
        return [stretch for start, end in spans for stretch in line.spans(start + 1, end - 1)]

    def _groups(self, line: ShapedLine) -> list[tuple[float, float, int]]:
        groups = self.text.multi_token_characters(line.start, line.end)
        return [(*line.spans(start, start + 1)[0], count) for start, count in groups]

    def _mark(self, piece: int, line: ShapedLine, row_end: int) -> TokenSegments | None:
        start, end = self.text.piece_span(piece)
        if start == end:
            return TokenSegments(piece, (), tick=self._tick(piece, line))
        if end > row_end and start < row_end and not self.text.text[start:row_end].strip(" \t\u2009"):
            return None  # only the trailing space is in this row; the word is in the next one
        spans = [(min(a, self.flow.width), min(b, self.flow.width + 4)) for a, b in line.spans(start, end)]
        if line.ends_paragraph and start < row_end <= end:
            spans = _add_newline_span(spans, line, self.metrics.newline)
        return TokenSegments(piece, tuple(spans), starts_here=start >= line.start) if spans else None

    def _tick(self, piece: int, line: ShapedLine) -> float:
        """Return the x position of the tick of an incomplete character. Several ticks are placed side by side."""
        return line.x(self.text.starts[piece]) + self.text.empty_before(piece) * self._tick_step


class _Utf16Positions:
    """Converts offsets of a short text to UTF-16 positions."""

    def __init__(self, text: str) -> None:
        self._text, self._plain = text, text.isascii()

    def __getitem__(self, offset: int) -> int:
        return offset if self._plain else len(self._text[:offset].encode("utf-16-le")) // 2


def _format(utf16: _Utf16Positions, start: int, end: int, color: QColor) -> QTextLayout.FormatRange:
    from PySide6.QtGui import QTextCharFormat  # import only once there is text

    style = QTextCharFormat()
    style.setForeground(color)
    result = QTextLayout.FormatRange()
    result.start, result.length, result.format = utf16[start], utf16[end] - utf16[start], style
    return result


def _add_newline_span(spans: list[tuple[float, float]], line: ShapedLine, width: float) -> list[tuple[float, float]]:
    """Give a line break some width of its own, so that it can be seen and clicked."""
    edge = line.text_end
    cell = (edge - width, edge) if line.rtl else (edge, edge + width)
    touching = [n for n, (left, right) in enumerate(spans) if abs(right - cell[0]) < 1 or abs(left - cell[1]) < 1]
    if not touching:
        return [*spans, cell]
    left, right = spans.pop(touching[-1])
    return [*spans, (min(left, cell[0]), max(right, cell[1]))]


CACHED_ROWS = 300


def _first_difference(ranges: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> int:
    """Return the first number that is in only one of two lists of ascending ranges [start, stop) that differ."""
    for (start, stop), (other_start, other_stop) in zip(ranges, others, strict=False):
        if start != other_start:
            return min(start, other_start)
        if stop != other_stop:
            return min(stop, other_stop)
    return max(ranges, others, key=len)[min(len(ranges), len(others))][0]


class TokenColumn:
    """A prompt and the tokens of one sequence after its prefix, laid out at one width."""

    def __init__(
        self,
        theme: Theme,
        sequence: int | None,
        prompt: Sequence[PromptToken] = (),
        answer_prefix: Sequence[PromptToken] = (),
    ) -> None:
        self.theme, self.sequence = theme, sequence
        self.metrics = TextMetrics.for_theme(theme)
        self._initial_text = tuple(prompt), tuple(answer_prefix)
        self.text = TokenText(*self._initial_text)
        self.left = self.top = 0.0
        self.width = 400.0
        self.limit = len(self.text.text)
        self._thinking: tuple[tuple[int, int], ...] = ()
        self._shaped_rows: dict[int, ShapedRow] = {}
        self._break_rows()

    def set_geometry(self, left: float, top: float, width: float) -> None:
        """Move and resize the column. Rows are broken again only if the width changed."""
        self.left, self.top = left, top
        if width != self.width:
            self.width = width
            self._break_rows()

    def restyle(self, theme: Theme) -> None:
        """Apply the colours and sizes of `theme`."""
        self.theme, self.metrics = theme, TextMetrics.for_theme(theme)
        self._break_rows()

    def _break_rows(self) -> None:
        font = self.theme.font(18)
        self.flow = LineFlow(font, self.width, tab=tab_distance(font))
        self._shaped_rows.clear()
        self.flow.update(self.text.text)

    def sync(self, tokens: Sequence[TokenChosen], tail: str, count: int) -> None:
        """Append new tokens and draw only the first `count`. Rebuild the text if the sequence was replaced."""
        known = len(self.text.tokens)
        if known and (len(tokens) < known or tokens[known - 1] is not self.text.tokens[known - 1]):
            self.text, known = TokenText(*self._initial_text), 0
            self.limit = len(self.text.text)
            self._break_rows()
        if len(tokens) > known or tail != self.text.tail:
            self.text.append(tokens[known:])
            if tail != self.text.tail:
                self.text.finish(tail)
            self._drop_cached_rows(self.flow.update(self.text.text))
        self._set_limit(self.text.end_of_tokens(count))

    def show_thinking(self, ranges: tuple[tuple[int, int], ...]) -> None:
        """Set the colour of the generated tokens in these ranges apart, after `sync`."""
        if ranges != self._thinking:
            first = _first_difference(ranges, self._thinking)
            self._thinking = ranges
            self._drop_cached_rows(self.flow.row_at(max(0, self.text.end_of_tokens(first) - 1)))

    def _drop_cached_rows(self, first: int) -> None:
        for row in [row for row in self._shaped_rows if row >= first]:
            del self._shaped_rows[row]

    def _set_limit(self, limit: int) -> None:
        if limit == self.limit:
            return
        for offset in (self.limit, limit):
            self._shaped_rows.pop(self.flow.row_at(offset), None)
            self._shaped_rows.pop(self.flow.row_at(max(0, offset - 1)), None)
        self.limit = limit

    @property
    def height(self) -> float:
        """Height of all rows, including those after the limit, so that nothing jumps while the cursor moves."""
        return float(len(self.flow.rows) * self.metrics.row)

    @property
    def drawn_rows(self) -> int:
        """Number of rows up to the limit."""
        return self.flow.row_at(max(0, self.limit - 1)) + 1 if self.limit else 0

    def row_top(self, row: int) -> float:
        """Top edge of a row, in the page."""
        return self.top + row * self.metrics.row

    def shaped_row(self, row: int) -> ShapedRow:
        """Return the shaped row, from the cache if possible."""
        art = self._shaped_rows.get(row)
        if art is None:
            if len(self._shaped_rows) >= CACHED_ROWS:
                self._shaped_rows.clear()
            shaper = RowShaper(self.theme, self.metrics, self.text, self.flow, self.limit, self._thinking)
            art = self._shaped_rows[row] = shaper.shape(row)
        return art

    def rects(self, token: int) -> list[QRectF]:
        """Return the boxes of a token in the page; several if it spans rows or mixes directions."""
        piece = token + self.text.prompt_pieces
        start, end = self.text.piece_span(piece)
        first, last = self.flow.row_at(start), self.flow.row_at(max(start, end - 1))
        return [
            self.box(row, left, right)
            for row in range(first, last + 1)
            for mark in self.shaped_row(row).marks
            if mark.piece == piece
            for left, right in self.mark_spans(mark)
        ]

    def mark_spans(self, mark: TokenSegments) -> tuple[tuple[float, float], ...]:
        """Return the spans of a mark; for a tick, a narrow span at its position."""
        if mark.tick is None:
            return mark.spans
        return ((mark.tick, mark.tick + self.metrics.tick),)

    def box(self, row: int, left: float, right: float) -> QRectF:
        """Return the cell of a span of a row, in the page."""
        inset = self.theme.px(2)
        height = self.metrics.row - 2 * inset
        return QRectF(self.left + left, self.row_top(row) + inset, right - left, height)

    def contains(self, x: float, y: float) -> bool:
        """Return whether the point lies in the column's area, including a small margin."""
        margin = 12
        inside = self.left - margin <= x <= self.left + self.width + margin
        return inside and self.top - margin <= y <= self.top + self.height + margin

    def token_at(self, x: float, y: float) -> int | None:
        """Return the drawn token at a point of the page, or None outside the text."""
        row = int((y - self.top) // self.metrics.row)
        if not 0 <= row < self.drawn_rows:
            return None
        x -= self.left
        low = y - self.row_top(row) > self.metrics.baseline
        marks = self.shaped_row(row).marks
        ticks = [mark for mark in marks if mark.tick is not None and low and -2 <= x - mark.tick <= self.metrics.tick]
        hits = ticks or [mark for mark in marks if any(left <= x < right for left, right in mark.spans)]
        return hits[0].piece - self.text.prompt_pieces if hits else None

    def offset_at(self, x: float, y: float) -> int:
        """Return the offset of the gap between characters nearest to a point of the page, up to the limit."""
        row = int((y - self.top) // self.metrics.row)
        if row < 0:
            return 0
        if row >= self.drawn_rows:
            return self.limit
        return min(self.limit, self.shaped_row(row).line.offset_at(x - self.left, nearest_gap=True))
