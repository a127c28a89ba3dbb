"""Token view for screen readers: a text to read word by word, and its tokens one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol, overload

from PySide6.QtCore import QPointF, QRect, QRectF, SignalInstance

from decodescope.app.state.run import Run
from decodescope.app.views.text.column import TokenColumn
from decodescope.app.views.text.token_wording import describe_token
from decodescope.app.views.tokens.token_columns import TokenColumns
from decodescope.app.widgets.accessibility import AccessiblePart, AccessibleText


class TokenAreaProtocol(Protocol):
    """The area that draws the tokens."""

    page: TokenColumns
    tokenPicked: SignalInstance

    @property
    def run(self) -> Run | None:
        """The drawn run."""

    def token_rect(self, token: int) -> QRect:
        """Return the first rectangle of a token in the viewport."""

    def from_page(self, rect: QRectF) -> QRect:
        """Convert a rectangle of the page to viewport coordinates."""


class AccessibleTokens(Sequence[AccessiblePart]):
    """The drawn tokens of the shown sequence, created on access because there may be thousands."""

    def __init__(self, area: TokenAreaProtocol) -> None:
        self._area = area

    def __len__(self) -> int:
        run = self._area.run
        return min(run.cursor, len(run.tokens)) if run is not None else 0

    @overload
    def __getitem__(self, index: int) -> AccessiblePart: ...

    @overload
    def __getitem__(self, index: slice) -> list[AccessiblePart]: ...

    def __getitem__(self, index: int | slice) -> AccessiblePart | list[AccessiblePart]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        if not 0 <= index < len(self):
            raise IndexError(index)
        area = self._area
        run = area.run
        assert run is not None
        name = describe_token(run.tokens[index], index + 1, len(run.tokens))
        pick = partial(area.tokenPicked.emit, index)
        return AccessiblePart(name, partial(area.token_rect, index), selected=run.selected == index, press=pick)


def accessible_text(area: TokenAreaProtocol) -> AccessibleText:
    """Return the drawn text of the shown sequence with its prompt; the cursor is at the selected token.

    An empty page returns an empty text, because screen readers query the text interface only once.
    """
    column, run = area.page.shown_column(), area.run
    if column is None or run is None:
        return AccessibleText("", 0, lambda _offset: QRect(), lambda _offset: None)
    here = run.selected if run.selected is not None else run.cursor - 1
    cursor = column.text.token_span(here)[0] if 0 <= here < len(column.text.tokens) else column.limit
    return AccessibleText(
        column.text.text[: column.limit],
        min(cursor, column.limit),
        partial(_character_rect, area, column),
        partial(_pick_token_at, area, column),
    )


def _character_rect(area: TokenAreaProtocol, column: TokenColumn, offset: int) -> QRect:
    row = column.flow.row_at(offset)
    line = column.shaped_row(row).line
    left, right = line.x(offset), line.x(min(offset + 1, line.end))
    corner = QPointF(column.left + min(left, right), column.row_top(row))
    return area.from_page(QRectF(corner.x(), corner.y(), max(1.0, abs(right - left)), column.metrics.row))


def _pick_token_at(area: TokenAreaProtocol, column: TokenColumn, offset: int) -> None:
    token = column.text.token_at(offset)
    if token is not None:
        area.tokenPicked.emit(token)
