"""Context menu of the selected token or node."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.app.views.base import View
from decodescope.app.widgets.plain_text import from_plain_text
from decodescope.resources.language import tr


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every item of the context menu of the front view."""
    view = context.centre.columns[0].current_view
    menu = view.selected_node_menu()
    if menu is None:
        return
    for action in menu.actions():
        title = from_plain_text(action.text().partition("\t")[0].replace("&&", "&"))
        if title and not action.isSeparator():
            reason = "" if action.isEnabled() else tr("Not available now.")
            yield PaletteEntry(
                f"picked.{title}", title, tr("Selected"), partial(_trigger, view, action.text()), reason=reason
            )
    menu.deleteLater()


def _trigger(view: View, text: str) -> None:
    """Trigger the menu item with the text `text`."""
    menu = view.selected_node_menu()
    if menu is not None:
        for action in menu.actions():
            if action.text() == text:
                action.trigger()
        menu.deleteLater()


SOURCE = PaletteSource(35, entries)
