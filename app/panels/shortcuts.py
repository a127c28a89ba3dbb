"""Every key of the program: those of the commands, and those that a view handles itself."""

from __future__ import annotations

from typing import NamedTuple

from app.panels.commands import COMMANDS, EDIT, FILE, HELP, RUN, TOOLS, VIEW
from resources.language import mark, tr


class Shortcut(NamedTuple):
    """`action` is the name of a command (`app.panels.commands`); empty for a view's own keys."""

    keys: tuple[str, ...]
    title: str
    group: str
    action: str = ""

    @property
    def label(self) -> str:
        """The keys as people read them; second names of the same key are left out."""
        names = (tr(key).replace("Return", "Enter") for key in self.keys if key not in _ALTERNATIVE_KEYS)
        return tr(" or ").join(names)


_ALTERNATIVE_KEYS = ("Ctrl+Enter", "Ctrl+=")
_MENU_GROUPS = {FILE: mark("File"), EDIT: mark("Edit"), VIEW: mark("View"), RUN: mark("Run"), TOOLS: mark("Tools"),
                   HELP: mark("Help")}  # fmt: skip
_COMMANDS = tuple(
    Shortcut(command.keys or tuple(filter(None, (command.shown_key,))), command.title, _MENU_GROUPS[command.menu],
             command.name)
    for command in COMMANDS
)  # fmt: skip
SHORTCUTS = (
    *_COMMANDS,
    Shortcut(("Ctrl+1 … Ctrl+9",), mark("Show that view"), mark("Views")),
    Shortcut(("Left", "Right"), mark("Walk along the tokens"), mark("Views")),
    Shortcut(("Home", "End"), mark("First and last token"), mark("Views")),
    Shortcut((mark("Shift+Arrow keys"),), mark("Select text along the tokens"), mark("Views")),
    Shortcut((mark("Arrow keys"),), mark("In a tree: parent, child, sibling"), mark("Views")),
    Shortcut(("Return",), mark("In a tree: fold or unfold"), mark("Views")),
    Shortcut(("+", "-"), mark("In a tree: zoom"), mark("Views")),
    Shortcut(("Space",), mark("Play and pause the timeline"), mark("Views")),
    Shortcut(("Space",), mark("Play and pause"), mark("Presenting")),
    Shortcut(("PgDown", "PgUp"), mark("A step on, a step back; a clicker's keys"), mark("Presenting")),
    Shortcut(("+", "-"), mark("Faster, slower"), mark("Presenting")),
    Shortcut(("P",), mark("The presenter's page: notes, what comes next, the time"), mark("Presenting")),
    Shortcut(("Ctrl+PgDown", "Ctrl+PgUp"), mark("The next view, the one before"), mark("Presenting")),
)
MAX_VIEW_KEYS = 9


def key_of(action: str) -> str:
    """The first key of a command, for menus and tooltips; empty when it has none."""
    return next((command.keys[0] for command in COMMANDS if command.name == action and command.keys), "")
