"""Actions: every command of the program."""

from __future__ import annotations

from collections.abc import Iterator

from decodescope.app.features.palette.controller.entry import (
    PaletteContext,
    PaletteEntry,
    PaletteSource,
    unavailable_reason,
)
from decodescope.app.panels.commands import COMMANDS, Command
from decodescope.resources.language import tr

EXCLUDED = ("open_palette", "open_menu")
"""The command that opens the palette, and a menu whose items are listed as entries themselves."""


def entries(context: PaletteContext) -> Iterator[PaletteEntry]:
    """Yield every action that is not excluded."""
    for command in COMMANDS:
        if command.name not in EXCLUDED:
            yield _entry(command, context)


def _entry(command: Command, context: PaletteContext) -> PaletteEntry:
    key = command.keys[0] if command.keys else command.shown_key
    return PaletteEntry(
        f"action.{command.name}",
        tr(command.title),
        tr("Action"),
        context.actions[command.name],
        aliases=(command.title, command.short_title, tr(command.short_title), command.name.replace("_", " ")),
        shortcut=key.replace("Return", "Enter"),
        about=tr(command.about),
        reason=unavailable_reason(command.name, context),
    )


SOURCE = PaletteSource(10, entries)
