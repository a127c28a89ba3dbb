"""The views: what the centre of the window can show of a run, one tab each.

A view is a QWidget with `set_theme(theme)`, `show_run(run | None)`, `events_arrived(run, events)`,
`cursor_moved(run)` and `selection_changed(run)`. It may offer `header_widget()` (its tools, for the right end of
the tab bar) and emit `tokenActivated(int)`, `sequenceActivated(int)` and `cursorRequested(int)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """One kind of view: its name in settings and on the command line, its tab's title, how to make one."""

    name: str
    title: str
    factory: Callable[[], QWidget]


def _made_by(module: str, cls: str) -> Callable[[], QWidget]:
    """A factory that imports the view's module only when the first one is wanted."""
    return lambda: getattr(import_module(f"{__name__}.{module}"), cls)()


VIEWS: tuple[ViewSpec, ...] = (
    ViewSpec("tokens", "Tokens", _made_by("tokens.view", "TokenView")),
    ViewSpec("chat", "Chat", _made_by("chat.view", "ChatView")),
    ViewSpec("tree", "Tree", _made_by("tree.view", "TreeView")),
    ViewSpec("speculation", "Speculation", _made_by("speculation.view", "SpeculationView")),
    ViewSpec("memory", "Memory", _made_by("memory.view", "MemoryView")),
    ViewSpec("compare", "Compare", _made_by("compare.view", "CompareView")),
)
