"""One column of tokens: its text, its rows, and where each token stands in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF

from app.theme.tabs import tab_distance
from app.theme.theme import Theme
from app.views.text.line_flow import LineFlow
from app.views.text.row_shaping import RowShaper, ShapedRow, TextMetrics, TokenMark
from app.views.text.token_text import TokenText

if TYPE_CHECKING:
    from core.events import PromptToken, TokenChosen

CACHED_ROWS = 300


class TokenColumn:
    """A prompt and the tokens of one sequence, behind what it begins with, laid out at one width."""

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
        self._shaped_rows: dict[int, ShapedRow] = {}
        self._break_rows()

    def set_geometry(self, left: float, top: float, width: float) -> None:
        """Put the column there; its rows are broken anew only when the width changed."""
        self.left, self.top = left, top
        if width != self.width:
            self.width = width
            self._break_rows()

    def restyle(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.theme, self.metrics = theme, TextMetrics.for_theme(theme)
        self._break_rows()

    def _break_rows(self) -> None:
        font = self.theme.font(18)
        self.flow = LineFlow(font, self.width, tab=tab_distance(font))
        self._shaped_rows.clear()
        self.flow.update(self.text.text)

    def sync(self, tokens: Sequence[TokenChosen], tail: str, count: int) -> None:
        """Take the tokens that are new, and draw the first `count` only; begin anew where the text became another."""
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
        """Of all rows, those after the limit included, so that nothing jumps while the cursor moves."""
        return float(len(self.flow.rows) * self.metrics.row)

    @property
    def drawn_rows(self) -> int:
        """Rows up to the limit."""
        return self.flow.row_at(max(0, self.limit - 1)) + 1 if self.limit else 0

    def row_top(self, row: int) -> float:
        """Upper edge of a row, in the page."""
        return self.top + row * self.metrics.row

    def shaped_row(self, row: int) -> ShapedRow:
        """The row, shaped; kept for the next painting."""
        art = self._shaped_rows.get(row)
        if art is None:
            if len(self._shaped_rows) >= CACHED_ROWS:
                self._shaped_rows.clear()
            shaper = RowShaper(self.theme, self.metrics, self.text, self.flow, self.limit)
            art = self._shaped_rows[row] = shaper.shape(row)
        return art

    def rects(self, token: int) -> list[QRectF]:
        """Boxes around a token, in the page; several when it is broken over rows or mixes directions."""
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

    def mark_spans(self, mark: TokenMark) -> tuple[tuple[float, float], ...]:
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
        marks = self.shaped_row(row).marks
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
        return min(self.limit, self.shaped_row(row).line.offset_at(x - self.left, nearest_gap=True))
