"""Where one is in the text, said to screen readers."""

from __future__ import annotations

from PySide6.QtGui import QAccessible, QAccessibleTextCursorEvent

from app.views.base import View
from app.views.text.token_wording import spoken
from app.views.tokens.area import TokenArea


def announce(view: View, area: TokenArea) -> None:
    """Say the selected token, or else the newest; nothing before there is one."""
    run, column = area.run, area.page.shown()
    if run is None or not run.tokens:
        return
    place = run.selected if run.selected is not None else max(0, run.cursor - 1)
    words = spoken(run.tokens[place], run.number_of(place), run.number_of(len(run.tokens) - 1))
    for part in (view, area):
        part.setAccessibleDescription(words)
    if QAccessible.isActive() and column is not None:
        QAccessible.updateAccessibility(QAccessibleTextCursorEvent(area, column.text.span(place)[0]))
