"""One column of tokens: its text, its rows, and where each token stands in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QTextCharFormat, QTextLayout

from app.theme.theme import Theme
from app.views.text.flow import Flow, Line
from app.views.text.pieces import TokenText
from core.events import PromptToken, TokenChosen

CACHED_ROWS = 300


@dataclass(frozen=True, slots=True)
class Metrics:
    """Heights and widths in pixels at the theme's scale."""

    row: int
    baseline: int
    underline: int
    newline: int
    tick: int

    @classmethod
    def of(cls, theme: Theme) -> Metrics:
        """Metrics of generated text set at 18 px with generous leading."""
        return cls(theme.px(35), theme.px(22), theme.px(28), theme.px(10), theme.px(4))


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece in one row: the stretches it covers; `tick` when it has no character of its own yet."""

    piece: int
    spans: tuple[tuple[float, float], ...]
    tick: float | None = None
    opens: bool = True
    """Whether the piece begins in this row."""


@dataclass(slots=True)
class RowArt:
    """A shaped row and its marks."""

    line: Line
    marks: list[Mark]
    pills: list[tuple[float, float]]
    """Stretches of control tokens, the prompt's included."""
    groups: list[tuple[float, float, int]]
    """Stretches of the prompt's characters that are made of several tokens, and of how many."""


class Column:
    """A prompt and the tokens of one sequence, laid out at one width."""

    def __init__(self, theme: Theme, sequence: int | None, prompt: Sequence[PromptToken] = ()) -> None:
        self.theme, self.sequence = theme, sequence
        self.metrics = Metrics.of(theme)
        self.text, self._prompt = TokenText(prompt), tuple(prompt)
        self.left = self.top = 0.0
        self.width = 400.0
        self.limit = len(self.text.text)
        self._art: dict[int, RowArt] = {}
        self._flow()

    def place(self, left: float, top: float, width: float) -> None:
        """Put the column there; its rows are broken anew only when the width changed."""
        self.left, self.top = left, top
        if width != self.width:
            self.width = width
            self._flow()

    def restyle(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.theme, self.metrics = theme, Metrics.of(theme)
        self._flow()

    def _flow(self) -> None:
        font = self.theme.font(18)
        self.flow = Flow(font, self.width, tab=self.theme.px(36))
        self._art.clear()
        self.flow.update(self.text.text)

    def sync(self, tokens: Sequence[TokenChosen], tail: str, count: int) -> None:
        """Take the tokens that are new, and draw the first `count` only; begin anew where the text became another."""
        known = len(self.text.tokens)
        if known and (len(tokens) < known or tokens[known - 1] is not self.text.tokens[known - 1]):
            self.text, known = TokenText(self._prompt), 0
            self.limit = len(self.text.text)
            self._flow()
        if len(tokens) > known or tail != self.text.tail:
            self.text.append(tokens[known:])
            if tail != self.text.tail:
                self.text.finish(tail)
            self._forget(self.flow.update(self.text.text))
        self._set_limit(self.text.limit(count))

    def _forget(self, first: int) -> None:
        for row in [row for row in self._art if row >= first]:
            del self._art[row]

    def _set_limit(self, limit: int) -> None:
        if limit == self.limit:
            return
        for offset in (self.limit, limit):
            self._art.pop(self.flow.row_at(offset), None)
            self._art.pop(self.flow.row_at(max(0, offset - 1)), None)
        self.limit = limit

    @property
    def height(self) -> float:
        """Of all rows, those after the limit included, so that nothing jumps while the cursor moves."""
        return float(len(self.flow.rows) * self.metrics.row)

    @property
    def drawn_rows(self) -> int:
        """Rows up to the limit."""
        return self.flow.row_at(max(0, self.limit - 1)) + 1 if self.limit else 0

    def row_top(self, row: int) -> float:
        """Upper edge of a row, in the page."""
        return self.top + row * self.metrics.row

    def art(self, row: int) -> RowArt:
        """The row, shaped; kept for the next painting."""
        art = self._art.get(row)
        if art is None:
            if len(self._art) >= CACHED_ROWS:
                self._art.clear()
            art = self._art[row] = self._shape(row)
        return art

    def _shape(self, index: int) -> RowArt:
        row = self.flow.rows[index]
        line = Line(self.text.text, row, self.flow, self._formats(row.start, row.end))
        drawn = [piece for piece in self.text.pieces_in(row.start, row.end) if self._is_drawn(piece)]
        marks = [mark for piece in drawn if (mark := self._mark(piece, line, row.end))]
        return RowArt(line, marks, self._pills(line), self._groups(line))

    def _is_drawn(self, piece: int) -> bool:
        start, end = self.text.piece_span(piece)
        return piece >= self.text.prompt_pieces and (start < self.limit or start == end == self.limit)

    def _formats(self, start: int, end: int) -> list[QTextLayout.FormatRange]:
        """Colours of a row: the prompt and control tokens muted, what is past the limit clear."""
        text, muted = self.text, self.theme.color("muted")
        ranges = [(0, text.prompt_end, muted), (text.owned, len(text.text), muted)]
        ranges += [(*text.piece_span(piece), muted) for piece in text.pieces_in(start, end) if piece in text.specials]
        ranges.append((self.limit, len(text.text), QColor(0, 0, 0, 0)))
        utf16 = _Utf16(text.text[start:end])
        return [_format(utf16, max(a, start) - start, min(b, end) - start, color)
                for a, b, color in ranges if min(b, end) > max(a, start)]  # fmt: skip

    def _pills(self, line: Line) -> list[tuple[float, float]]:
        text = self.text
        pieces = [piece for piece in text.pieces_in(line.start, line.end) if piece in text.specials]
        spans = [text.piece_span(piece) for piece in pieces if text.starts[piece] < self.limit]
        return [stretch for start, end in spans for stretch in line.spans(start + 1, end - 1)]

    def _groups(self, line: Line) -> list[tuple[float, float, int]]:
        groups = self.text.groups_in(line.start, line.end)
        return [(*line.spans(start, start + 1)[0], count) for start, count in groups]

    def _mark(self, piece: int, line: Line, row_end: int) -> Mark | None:
        start, end = self.text.piece_span(piece)
        if start == end:
            return Mark(piece, (), tick=self._tick(piece, line))
        if end > row_end and start < row_end and not self.text.text[start:row_end].strip(" \t\u2009"):
            return None  # only the space that hangs at the end of the row; the word is in the next one
        spans = [(min(a, self.width), min(b, self.width + 4)) for a, b in line.spans(start, end)]
        if line.ends_paragraph and start < row_end <= end:
            spans = _with_newline(spans, line, self.metrics.newline)
        return Mark(piece, tuple(spans), opens=start >= line.start) if spans else None

    def _tick(self, piece: int, line: Line) -> float:
        """Where the tick of an unfinished character stands; several stand side by side."""
        start = self.text.starts[piece]
        before = 0
        while piece - before > 0 and self.text.piece_span(piece - before - 1) == (start, start):
            before += 1
        return line.x(start) + before * self.metrics.tick * 1.5

    def rects(self, token: int) -> list[QRectF]:
        """Boxes around a token, in the page; several when it is broken over rows or mixes directions."""
        piece = token + self.text.prompt_pieces
        start, end = self.text.piece_span(piece)
        first, last = self.flow.row_at(start), self.flow.row_at(max(start, end - 1))
        return [
            self.box(row, left, right)
            for row in range(first, last + 1)
            for mark in self.art(row).marks
            if mark.piece == piece
            for left, right in self.stretches(mark)
        ]

    def stretches(self, mark: Mark) -> tuple[tuple[float, float], ...]:
        """The mark's stretches; for a tick a narrow one around it."""
        if mark.tick is None:
            return mark.spans
        return ((mark.tick, mark.tick + self.metrics.tick),)

    def box(self, row: int, left: float, right: float) -> QRectF:
        """The cell of a stretch of a row, in the page."""
        inset = self.theme.px(2)
        height = self.metrics.row - 2 * inset
        return QRectF(self.left + left, self.row_top(row) + inset, right - left, height)

    def contains(self, x: float, y: float) -> bool:
        """Whether the point lies in the column's area (or just beside it)."""
        margin = 12
        inside = self.left - margin <= x <= self.left + self.width + margin
        return inside and self.top - margin <= y <= self.top + self.height + margin

    def token_at(self, x: float, y: float) -> int | None:
        """The drawn token under a point of the page; None beside the text."""
        row = int((y - self.top) // self.metrics.row)
        if not 0 <= row < self.drawn_rows:
            return None
        x -= self.left
        low = y - self.row_top(row) > self.metrics.baseline
        marks = self.art(row).marks
        ticks = [mark for mark in marks if mark.tick is not None and low and -2 <= x - mark.tick <= self.metrics.tick]
        hits = ticks or [mark for mark in marks if any(left <= x < right for left, right in mark.spans)]
        return hits[0].piece - self.text.prompt_pieces if hits else None

    def offset_at(self, x: float, y: float) -> int:
        """Offset of the gap between characters nearest to a point of the page, up to the limit."""
        row = int((y - self.top) // self.metrics.row)
        if row < 0:
            return 0
        if row >= self.drawn_rows:
            return self.limit
        return min(self.limit, self.art(row).line.offset_at(x - self.left, between=True))


class _Utf16:
    """UTF-16 positions of a short text."""

    def __init__(self, text: str) -> None:
        self._text, self._plain = text, text.isascii()

    def __getitem__(self, offset: int) -> int:
        return offset if self._plain else len(self._text[:offset].encode("utf-16-le")) // 2


def _format(utf16: _Utf16, start: int, end: int, color: QColor) -> QTextLayout.FormatRange:
    style = QTextCharFormat()
    style.setForeground(color)
    result = QTextLayout.FormatRange()
    result.start, result.length, result.format = utf16[start], utf16[end] - utf16[start], style
    return result


def _with_newline(spans: list[tuple[float, float]], line: Line, width: float) -> list[tuple[float, float]]:
    """A line break gets a little room of its own, so that it can be seen and clicked."""
    edge = line.right
    cell = (edge - width, edge) if line.rtl else (edge, edge + width)
    touching = [n for n, (left, right) in enumerate(spans) if abs(right - cell[0]) < 1 or abs(left - cell[1]) < 1]
    if not touching:
        return [*spans, cell]
    left, right = spans.pop(touching[-1])
    return [*spans, (min(left, cell[0]), max(right, cell[1]))]
