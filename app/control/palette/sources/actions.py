"""Actions: every command of the program."""

from __future__ import annotations

from collections.abc import Iterator

from app.control.palette.availability import unavailable_reason
from app.control.palette.entry import PaletteContext, PaletteEntry, PaletteSource
from app.panels.commands import COMMANDS, Command
from resources.language import tr

LEFT_OUT = ("open_palette", "open_menu")
"""What opens the palette; and a menu whose lines are listed as what can be done with what is picked."""


def entries(reach: PaletteContext) -> Iterator[PaletteEntry]:
    """Every action that is not left out."""
    for command in COMMANDS:
        if command.name not in LEFT_OUT:
            yield _entry(command, reach)


def _entry(command: Command, reach: PaletteContext) -> PaletteEntry:
    key = command.keys[0] if command.keys else command.shown_key
    return PaletteEntry(
        f"action.{command.name}",
        tr(command.title),
        tr("Action"),
        reach.actions[command.name],
        also=(command.title, command.short_title, tr(command.short_title), command.name.replace("_", " ")),
        shortcut=key.replace("Return", "Enter"),
        about=tr(command.about),
        reason=unavailable_reason(command.name, reach),
    )


SOURCE = PaletteSource(10, entries)
