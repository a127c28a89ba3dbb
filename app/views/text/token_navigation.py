"""Keyboard navigation between tokens, and text selection with Shift."""

from __future__ import annotations

from PySide6.QtCore import Qt

from decodescope.app.views.text.column import TokenColumn

_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_ROWS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}
BACKWARD_KEYS = (Qt.Key.Key_Left, Qt.Key.Key_Up, Qt.Key.Key_PageUp, Qt.Key.Key_Home)
NAVIGATION_KEYS = {*_STEPS, *_ROWS, Qt.Key.Key_Home, Qt.Key.Key_End}
_PAGES = (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


def token_for_key(column: TokenColumn, key: Qt.Key, selected: int | None, count: int, page: int) -> int | None:
    """Return the token that `key` moves to from `selected` (None: from the newest); None for other keys.

    `count` is the number of drawn tokens, `page` the number of rows that Page Up and Page Down move.
    """
    here = min(count - 1 if selected is None else selected, count - 1)
    if key == Qt.Key.Key_Home:
        return 0
    if key == Qt.Key.Key_End:
        return count - 1
    if key in _STEPS:
        delta = 0 if selected is None else _STEPS[key]  # the first press only shows the current position
        return min(max(here + delta, 0), count - 1)
    if key in _ROWS:
        return _token_by_row(column, here, _ROWS[key] * (page if key in _PAGES else 1), count)
    return None


def selection_end_for_key(column: TokenColumn, key: Qt.Key, head: int, page: int) -> int:
    """Return the offset to which `key` (one of `NAVIGATION_KEYS`), pressed with Shift, moves the end of a selection.

    Left and Right move by tokens, also in the prompt; `page` is the number of rows that Page Up and Page Down move.
    """
    if key == Qt.Key.Key_Home:
        return 0
    if key == Qt.Key.Key_End:
        return column.limit
    if key == Qt.Key.Key_Left:
        return max((start for start in column.text.starts if start < head), default=0)
    if key == Qt.Key.Key_Right:
        return min((start for start in column.text.starts if head < start < column.limit), default=column.limit)
    return _offset_by_row(column, head, _ROWS[key] * (page if key in _PAGES else 1))


def _offset_by_row(column: TokenColumn, head: int, rows: int) -> int:
    """Return the offset `rows` rows below; the start or end of the text if there is no such row."""
    row = column.flow.row_at(head)
    x = column.left + column.shaped_row(row).line.x(head)
    return column.offset_at(x, column.row_top(row + rows) + column.metrics.baseline)


def _token_by_row(column: TokenColumn, here: int, rows: int, count: int) -> int:
    """Return the token `rows` rows below, nearest to the middle of this one."""
    box = column.rects(here)[0]
    x = box.center().x()
    row = int((box.center().y() - column.top) // column.metrics.row) + rows
    first = column.flow.row_at(column.text.token_span(0)[0])
    row = min(max(row, first), column.drawn_rows - 1)
    return min(_nearest_token(column, row, x - column.left, here), count - 1)


def _nearest_token(column: TokenColumn, row: int, x: float, otherwise: int) -> int:
    places = [
        (max(left - x, x - right, 0.0), mark.piece - column.text.prompt_pieces)
        for mark in column.shaped_row(row).marks
        for left, right in column.mark_spans(mark)
    ]
    return min(places)[1] if places else otherwise
