"""Which characters are selected for copying, and in which column."""

from __future__ import annotations

from app.views.text.column import TokenColumn
from core.lightweight_dataclass import plain


@plain()
class TextSelection:
    """A stretch of one column's text, from where the mouse or the keys began to where they are."""

    column: TokenColumn | None = None
    anchor: int = 0
    head: int = 0

    def start(self, column: TokenColumn | None, offset: int) -> None:
        """Start anew; nothing is selected yet."""
        self.column, self.anchor, self.head = column, offset, offset

    def select_all(self, column: TokenColumn) -> None:
        """Everything that the column shows."""
        self.column, self.anchor, self.head = column, 0, column.limit

    def start_at_token(self, column: TokenColumn, token: int | None, backwards: bool) -> None:
        """Start anew at an edge of a token, or at the end of what is drawn where there is none."""
        start, end = column.text.token_span(token) if token is not None else (column.limit, column.limit)
        self.start(column, end if backwards else start)

    def range_in(self, column: TokenColumn) -> tuple[int, int]:
        """The selected stretch of `column`; empty for the others."""
        if column is not self.column:
            return 0, 0
        return min(self.anchor, self.head), max(self.anchor, self.head)

    @property
    def text(self) -> str:
        """What is to be copied, exactly as it was written."""
        return self.column.text.original_text(*self.range_in(self.column)) if self.column else ""
