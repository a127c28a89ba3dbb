"""Walking the tree with the keyboard: parent, child, neighbours. No Qt in here."""

from __future__ import annotations

from collections.abc import Sequence

from app.widgets.tree_canvas.tree_scene import TreeScene


def parent_of(scene: TreeScene, node: int) -> int:
    """One step towards the root."""
    above = scene.model.nodes[node].parent
    return node if above is None else above


def preferred_child(scene: TreeScene, node: int, preferred: Sequence[int] = ()) -> int:
    """The first shown child; the one on the `preferred` path, or one that lives on, before the others."""
    below = [n for n in scene.model.children.get(node, ()) if scene.is_shown(n)]
    if not below:
        return node
    liked = set(preferred).intersection(below)
    grown = [n for n in below if scene.model.children.get(n)]
    return next(iter(liked), grown[0] if grown else below[0])


def neighbour(scene: TreeScene, node: int, steps: int) -> int:
    """The sibling above or below; past the last one, the nearest cousin."""
    column = scene.layout.nodes_in(scene.model.depth[node])
    index = column.index(node) + steps
    return column[min(max(index, 0), len(column) - 1)]


def nearest_shown_ancestor(scene: TreeScene, node: int) -> int | None:
    """`node`, or the ancestor that stands for it when it is folded away or beyond the last depth shown."""
    here: int | None = node if node in scene.model else None
    while here is not None and not scene.is_shown(here):
        here = scene.model.nodes[here].parent
    return here
