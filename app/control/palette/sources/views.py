"""Views: one is brought to the front, and has the cursor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Qt

from app.control.palette.entry import PaletteContext, PaletteEntry, PaletteSource
from app.panels.commands import MAX_VIEW_KEYS
from app.views import VIEWS
from resources.language import tr


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """All of them, those without a tab too."""
    offered = context.centre.columns[0].available_names
    for number, view in enumerate(VIEWS):
        yield PaletteEntry(
            f"view.{view.name}",
            tr(view.title),
            tr("View"),
            partial(_show, context, view.name),
            aliases=(view.title, view.name),
            shortcut=f"Ctrl+{number + 1}" if number < MAX_VIEW_KEYS else "",
            reason="" if view.name in offered else tr("It is there once a run has branched from another one."),
        )


def _show(context: PaletteContext, name: str) -> None:
    context.centre.show_view(name)
    context.centre.columns[0].current_view.setFocus(Qt.FocusReason.ShortcutFocusReason)


SOURCE = PaletteSource(30, entries)
