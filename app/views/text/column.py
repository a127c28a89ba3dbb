"""One column of tokens: its text, its rows, and where each token stands in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF

from app.theme.tabs import tab_distance
from app.theme.theme import Theme
from app.views.text.line_flow import Flow
from app.views.text.row_shaping import Mark, RowArt, RowShaper, TextMetrics
from app.views.text.token_text import TokenText

if TYPE_CHECKING:
    from core.events import PromptToken, TokenChosen

CACHED_ROWS = 300


class Column:
    """A prompt and the tokens of one sequence, behind what it begins with, laid out at one width."""

    def __init__(
        self,
        theme: Theme,
        sequence: int | None,
        prompt: Sequence[PromptToken] = (),
        beginning: Sequence[PromptToken] = (),
    ) -> None:
        self.theme, self.sequence = theme, sequence
        self.metrics = TextMetrics.of(theme)
        self._opening = tuple(prompt), tuple(beginning)
        self.text = TokenText(*self._opening)
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
        self.theme, self.metrics = theme, TextMetrics.of(theme)
        self._flow()

    def _flow(self) -> None:
        font = self.theme.font(18)
        self.flow = Flow(font, self.width, tab=tab_distance(font))
        self._art.clear()
        self.flow.update(self.text.text)

    def sync(self, tokens: Sequence[TokenChosen], tail: str, count: int) -> None:
        """Take the tokens that are new, and draw the first `count` only; begin anew where the text became another."""
        known = len(self.text.tokens)
        if known and (len(tokens) < known or tokens[known - 1] is not self.text.tokens[known - 1]):
            self.text, known = TokenText(*self._opening), 0
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
            shaper = RowShaper(self.theme, self.metrics, self.text, self.flow, self.limit)
            art = self._art[row] = shaper.shape(row)
        return art

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
