"""Columns of the token view: their layout, and the text selected in them."""

from __future__ import annotations

from PySide6.QtCore import QRectF

from decodescope.app.state.media import display_prompt
from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.views.text.column import TokenColumn
from decodescope.core.common.lightweight_dataclass import plain


@plain()
class TextSelection:
    """A selected range of one column's text, from where it was started to its moving end."""

    column: TokenColumn | None = None
    anchor: int = 0
    head: int = 0

    def start(self, column: TokenColumn | None, offset: int) -> None:
        """Start a new, empty selection."""
        self.column, self.anchor, self.head = column, offset, offset

    def select_all(self, column: TokenColumn) -> None:
        """Select everything that the column shows."""
        self.column, self.anchor, self.head = column, 0, column.limit

    def start_at_token(self, column: TokenColumn, token: int | None, backwards: bool) -> None:
        """Start a new selection at an edge of a token, or at the end of the drawn text."""
        start, end = column.text.token_span(token) if token is not None else (column.limit, column.limit)
        self.start(column, end if backwards else start)

    def range_in(self, column: TokenColumn) -> tuple[int, int]:
        """Return the selected range of `column`; empty for other columns."""
        if column is not self.column:
            return 0, 0
        return min(self.anchor, self.head), max(self.anchor, self.head)

    @property
    def text(self) -> str:
        """The selected text in its original form."""
        return self.column.text.original_text(*self.range_in(self.column)) if self.column else ""


MIN_COLUMN_WIDTH, GAP, MAX_COLUMN_WIDTH = 160, 28, 900
"""Pixels at 100 %: minimum column width, gap between columns, maximum width of a single column."""


def drawn_count(run: Run, sequence: int) -> int:
    """Return how many tokens of a sequence are drawn at the cursor."""
    tokens = run.sequences[sequence].tokens
    if sequence == run.shown_index:
        return min(run.cursor, len(tokens))
    return len(tokens) if run.cursor >= len(run.tokens) else min(run.cursor, len(tokens))


class TokenColumns:
    """The columns of one run. `prompt` is a column above them if there are several."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.run: Run | None = None
        self.width = 0.0
        self.prompt: TokenColumn | None = None
        self.columns: list[TokenColumn] = []
        self._columns_key: tuple[object, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether there is anything to draw besides the empty page."""
        return self.run is not None and bool(self.run.prompt or self.run.tokens)

    @property
    def is_side_by_side(self) -> bool:
        """Whether all sequences are shown side by side."""
        return len(self.columns) > 1

    @property
    def heading_height(self) -> int:
        """Height of a column's heading in pixels."""
        return self.theme.px(34) if self.is_side_by_side else 0

    def all_columns(self) -> list[TokenColumn]:
        """Return the prompt's column, if it has its own, then the columns of the sequences."""
        return [self.prompt, *self.columns] if self.prompt else self.columns

    def shown_column(self) -> TokenColumn | None:
        """Return the column of the sequence that the run shows."""
        return next((column for column in self.columns if self.run and column.sequence == self.run.shown_index), None)

    def update(self, run: Run | None, width: float) -> None:
        """Update to the run: rebuild the columns if the run, its prompt or the layout changed, otherwise append."""
        self.run = run
        if run is None:
            self.columns, self.prompt, self._columns_key = [], None, ()
            return
        self._update_columns(run, width)
        for column in self.columns:
            sequence = run.sequences[column.sequence or 0]
            tail = sequence.finished.tail if sequence.finished else ""
            column.sync(sequence.tokens, tail, drawn_count(run, sequence.index))
            column.show_thinking(run.thinking_of(sequence.index).ranges)
        self._arrange_columns(width)

    def restyle(self, theme: Theme) -> None:
        """Apply another theme; `update` then lays out the columns again."""
        self.theme = theme
        for column in self.all_columns():
            column.restyle(theme)

    def _fits(self, run: Run, width: float) -> bool:
        count = len(run.sequences)
        return count > 1 and (width + self.theme.px(GAP)) / count >= self.theme.px(MIN_COLUMN_WIDTH + GAP)

    def _update_columns(self, run: Run, width: float) -> None:
        is_side_by_side = self._fits(run, width)
        key = (
            id(run),
            id(run.started),
            len(run.sequences),
            is_side_by_side,
            None if is_side_by_side else run.shown_index,
        )
        if key == self._columns_key:
            return
        self._columns_key = key
        prompt = display_prompt(run.prompt, run.started.media if run.started is not None else ())
        self.prompt = TokenColumn(self.theme, None, prompt) if is_side_by_side and prompt else None
        numbers = range(len(run.sequences)) if is_side_by_side else [run.shown_index]
        self.columns = [TokenColumn(self.theme, n, () if is_side_by_side else prompt, run.beginning) for n in numbers]
        if self.prompt:
            self.prompt.limit = len(self.prompt.text.text)

    def _arrange_columns(self, width: float) -> None:
        gap, measure = self.theme.px(GAP), self.theme.px(MAX_COLUMN_WIDTH)
        if not self.is_side_by_side:
            self.columns[0].set_geometry(0, 0, min(width, measure))
            return
        top = 0.0
        if self.prompt:
            self.prompt.set_geometry(0, 0, min(width, measure))
            top = self.prompt.height + self.theme.px(8)
        column_width = (width - gap * (len(self.columns) - 1)) / len(self.columns)
        for n, column in enumerate(self.columns):
            column.set_geometry(n * (column_width + gap), top + self.heading_height, float(int(column_width)))

    def boxes(self, token: int | None) -> list[QRectF]:
        """Return the boxes of a token of the shown sequence, one per row; empty if it is not drawn."""
        column = self.shown_column()
        return column.rects(token) if column and token is not None and token < len(column.text.tokens) else []

    def first_changing_y(self) -> float:
        """Return the y position from which the next tokens may change the drawing (the newest token and one row)."""
        column = self.shown_column()
        if column is None or self.is_side_by_side:
            return 0.0
        return column.row_top(max(0, column.drawn_rows - 2))

    @property
    def height(self) -> float:
        """Height of the page in pixels."""
        return max((column.top + column.height for column in self.all_columns()), default=0.0)

    def column_at(self, x: float, y: float) -> TokenColumn | None:
        """Return the column at a point of the page, including its heading."""
        below = [column for column in self.columns if column.contains(x, max(y, column.top))]
        if self.is_side_by_side and (not below or y < below[0].top - self.heading_height):
            return None
        return below[0] if below else None

    def nearest_column(self, x: float, y: float) -> TokenColumn | None:
        """Return the column in which a selection started at a point of the page belongs."""
        candidates = self.all_columns()
        if self.prompt and y < self.prompt.top + self.prompt.height:
            return self.prompt
        columns = [column for column in candidates if column is not self.prompt]
        return min(columns, key=lambda c: max(c.left - x, x - c.left - c.width, 0.0), default=None)
