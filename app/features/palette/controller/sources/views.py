"""Views: show and focus one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Qt

from decodescope.app.features.palette.controller.entry import PaletteContext, PaletteEntry, PaletteSource
from decodescope.app.panels.commands import MAX_VIEW_KEYS
from decodescope.app.views import VIEWS
from decodescope.resources.language import tr


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield all views, including those without a tab."""
    offered = context.centre.columns[0].available_names
    for number, view in enumerate(VIEWS):
        yield PaletteEntry(
            f"view.{view.name}",
            tr(view.title),
            tr("View"),
            partial(_show, context, view.name),
            aliases=(view.title, view.name),
            shortcut=f"Ctrl+{number + 1}" if number < MAX_VIEW_KEYS else "",
            reason="" if view.name in offered else tr("Available once a run has a branch."),
        )


def _show(context: PaletteContext, name: str) -> None:
    context.centre.show_view(name)
    context.centre.columns[0].current_view.setFocus(Qt.FocusReason.ShortcutFocusReason)


SOURCE = PaletteSource(30, entries)
