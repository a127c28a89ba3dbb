"""What the menu of the picked token or node offers: to go on with something else, to copy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from app.control.palette.entry import PaletteContext, PaletteEntry, PaletteSource
from app.views.base import View
from app.widgets.plain_text import from_plain_text
from resources.language import tr


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Every line of the menu that the Menu key opens in the view in front."""
    view = context.centre.columns[0].current_view
    menu = view.selected_node_menu()
    if menu is None:
        return
    for action in menu.actions():
        title = from_plain_text(action.text().partition("\t")[0].replace("&&", "&"))
        if title and not action.isSeparator():
            reason = "" if action.isEnabled() else tr("There is nothing for it to do now.")
            yield PaletteEntry(
                f"picked.{title}", title, tr("Picked"), partial(_trigger, view, action.text()), reason=reason
            )
    menu.deleteLater()


def _trigger(view: View, text: str) -> None:
    """As a click on that line would."""
    menu = view.selected_node_menu()
    if menu is not None:
        for action in menu.actions():
            if action.text() == text:
                action.trigger()
        menu.deleteLater()


SOURCE = PaletteSource(35, entries)
