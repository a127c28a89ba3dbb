"""The views: what the centre of the window shows of a run, one tab each.

`app.views.base` defines the hooks and signals of a view.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.app.views.base import View


class ViewSpec(NamedTuple):
    """One kind of view: its name in settings and on the command line, its tab's title, its factory."""

    name: str
    title: str
    factory: Callable[[], View]
    hidden_when_empty: bool = False
    """Whether the tab is shown only while the view has contents."""


def _lazy_factory(module: str, cls: str) -> Callable[[], View]:
    """Return a factory that imports the view's module on first use."""

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
