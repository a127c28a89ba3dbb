"""Where one is in the text, said to screen readers."""

from __future__ import annotations

from PySide6.QtGui import QAccessible, QAccessibleTextCursorEvent

from app.views.base import View
from app.views.text.token_wording import describe_token
from app.views.tokens.area import TokenArea


def announce_current_token(view: View, area: TokenArea) -> None:
    """Say the selected token, or else the newest; nothing before there is one."""
    run, column = area.run, area.page.shown_column()
    if run is None or not run.tokens:
        return
    index = run.selected if run.selected is not None else max(0, run.cursor - 1)
    description = describe_token(run.tokens[index], run.number_of(index), run.number_of(len(run.tokens) - 1))
    for part in (view, area):
        part.setAccessibleDescription(description)
    if QAccessible.isActive() and column is not None:
        QAccessible.updateAccessibility(QAccessibleTextCursorEvent(area, column.text.token_span(index)[0]))
