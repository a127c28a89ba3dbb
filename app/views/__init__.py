"""The views: what the centre of the window can show of a run, one tab each.

What a view is told and what it may ask for stands in `app.views.base`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from resources.language import mark

if TYPE_CHECKING:
    from app.views.base import View


class ViewSpec(NamedTuple):
    """One kind of view: its name in settings and on the command line, its tab's title, how to make one."""

    name: str
    title: str
    factory: Callable[[], View]
    hidden_when_empty: bool = False
    """Its tab is there only while there is something to see on it."""


def _lazy_factory(module: str, cls: str) -> Callable[[], View]:
    """A factory that imports the view's module only when the first one is wanted."""

    def make() -> View:
        view: View = getattr(import_module(f"{__name__}.{module}"), cls)()
        return view

    return make


VIEWS: tuple[ViewSpec, ...] = (
    ViewSpec("tokens", mark("Tokens"), _lazy_factory("tokens.view", "TokenView")),
    ViewSpec("chat", mark("Chat"), _lazy_factory("chat.view", "ChatView")),
    ViewSpec("tree", mark("Tree"), _lazy_factory("tree.view", "TreeView")),
    ViewSpec("speculation", mark("Speculation"), _lazy_factory("speculation.view", "SpeculationView")),
    ViewSpec("memory", mark("Memory"), _lazy_factory("memory.view", "MemoryView")),
    ViewSpec("compare", mark("Compare"), _lazy_factory("compare.view", "CompareView")),
    ViewSpec("branches", mark("Branches"), _lazy_factory("branches.view", "BranchesView"), hidden_when_empty=True),
)
