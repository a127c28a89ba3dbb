"""A growing tree: nodes by id, children in order of arrival, and folded subtrees. No Qt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

NodeState = Literal[
    "root",
    "kept",
    "pruned",
    "best",
    "finished",
    "refused",
    "unreached",
    "accepted",
    "bonus",
    "correction",
    "lone",
    "cut",
    "stopped",
]
"""State of a node, drawn and read by screen readers."""
STATES: tuple[NodeState, ...] = get_args(NodeState)
FAINT_STATES: frozenset[NodeState] = frozenset({"pruned", "refused", "unreached", "lone"})
"""States of less important nodes, most of them dead ends; they can be hidden or dimmed."""


@dataclass(slots=True)
class TreeNode:
    """A node as the canvas shows it."""

    id: int
    parent: int | None
    label: str
    value: str = ""
    """Short figure at the right end, such as `.46`."""
    note: str = ""
    """Second line, smaller."""
    weight: float = 1.0
    """Thickness of the edge, 0 to 1."""
    state: NodeState = "kept"
    badge: str = ""
    """A short text below the node."""
    lane: int | None = 0
    """Lane in which the node is laid out; None for nodes before all lanes."""
    progress: tuple[int, int] | None = None
    """(met, total), drawn as filled marks."""
    drafters: tuple[int, ...] = ()
    """Drafters that proposed the node, if there are several; drawn as their marks."""


class TreeModel:
    """Nodes and their order. The tree's shape changes only by `add` and `folded`."""

    def __init__(self) -> None:
        self.nodes: dict[int, TreeNode] = {}
        self.children: dict[int, list[int]] = {}
        self.depth: dict[int, int] = {}
        self.columns: list[list[int]] = []
        self.folded: set[int] = set()

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: int) -> bool:
        return node in self.nodes

    def add(self, nodes: Iterable[TreeNode]) -> list[int]:
        """Append nodes, parents before children, and return the depths that grew.

        Raises ValueError for a duplicate id, a missing parent or an unknown state.
        """
        grown: set[int] = set()
        for node in nodes:
            self._check(node)
            depth = 0 if node.parent is None else self.depth[node.parent] + 1
            self.nodes[node.id] = node
            self.depth[node.id] = depth
            if node.parent is not None:
                self.children.setdefault(node.parent, []).append(node.id)
            if depth == len(self.columns):
                self.columns.append([])
            self.columns[depth].append(node.id)
            grown.add(depth)
        return sorted(grown)

    def _check(self, node: TreeNode) -> None:
        if node.id in self.nodes:
            raise ValueError(f"The tree has a node {node.id} already.")
        if node.parent is not None and node.parent not in self.nodes:
            raise ValueError(f"Node {node.id} names the parent {node.parent}, which is not in the tree.")
        if node.state not in STATES:
            raise ValueError(f"Node {node.id} has the state {node.state!r}; a state is one of {', '.join(STATES)}.")

    def is_faint(self, node: int) -> bool:
        """Return whether the node is less important than its live siblings."""
        return self.nodes[node].state in FAINT_STATES

    def path(self, node: int) -> list[int]:
        """Return the path from the root to `node`, both included."""
        path: list[int] = []
        here: int | None = node
        while here is not None:
            path.append(here)
            here = self.nodes[here].parent
        return path[::-1]

    def descendants(self, node: int, deepest: int | None = None) -> Iterator[int]:
        """Yield all nodes below `node`, down to depth `deepest`."""
        waiting = [node]
        while waiting:
            here = waiting.pop()
            if deepest is not None and self.depth[here] >= deepest:
                continue
            below = self.children.get(here, ())
            yield from below
            waiting.extend(below)

    def count_below(self, node: int, deepest: int | None = None) -> int:
        """Return the number of nodes below `node`."""
        return sum(1 for _ in self.descendants(node, deepest))

    def search(self, text: str, deepest: int | None = None) -> list[int]:
        """Return the nodes whose label contains `text`, ignoring case, by depth."""
        query = text.casefold().replace(" ", "␣") if text.strip() == "" else text.casefold().strip()
        columns = self.columns if deepest is None else self.columns[: deepest + 1]
        if not query:
            return []
        return [node for column in columns for node in column if query in self.nodes[node].label.casefold()]
