"""Views: one is brought to the front, and has the cursor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Qt

from app.control.palette.entry import PaletteContext, PaletteEntry, PaletteSource
from app.panels.shortcuts import MOST_VIEW_KEYS
from app.views import VIEWS
from resources.language import tr


def entries(reach: PaletteContext) -> Iterator[PaletteEntry]:
    """All of them, those without a tab too."""
    offered = reach.centre.columns[0].offered
    for number, view in enumerate(VIEWS):
        yield PaletteEntry(
            f"view.{view.name}",
            tr(view.title),
            tr("View"),
            partial(_show, reach, view.name),
            also=(view.title, view.name),
            shortcut=f"Ctrl+{number + 1}" if number < MOST_VIEW_KEYS else "",
            reason="" if view.name in offered else tr("It is there once a run has branched from another one."),
        )


def _show(reach: PaletteContext, name: str) -> None:
    reach.centre.show_view(name)
    reach.centre.columns[0].shown.setFocus(Qt.FocusReason.ShortcutFocusReason)


SOURCE = PaletteSource(30, entries)
