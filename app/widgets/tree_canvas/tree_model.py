"""A tree that grows: nodes by number, children in the order they came, and which subtrees are folded. No Qt in here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

NodeState = Literal[
    "root", "kept", "pruned", "best", "finished", "refused", "unreached", "accepted", "bonus", "correction", "lone"
]
"""What has become of a node: drawn, and read out."""
STATES: tuple[NodeState, ...] = get_args(NodeState)
FAINT_STATES: frozenset[NodeState] = frozenset({"pruned", "refused", "unreached", "lone"})
"""States of nodes that matter less, most of them because they lead nowhere: hidden or dimmed on demand."""


@dataclass(slots=True)
class TreeNode:
    """What the canvas knows of a node."""

    id: int
    parent: int | None
    label: str
    value: str = ""
    """Short figure at the right end, `.46`."""
    note: str = ""
    """Second line, smaller."""
    weight: float = 1.0
    """0 to 1: how thick its edge is."""
    state: NodeState = "kept"
    badge: str = ""
    """A word or two below the node."""
    lane: int | None = 0
    """Which band it is laid out in; None for what stands before all bands."""
    progress: tuple[int, int] | None = None
    """(met, total), drawn as filled marks."""
    drafters: tuple[int, ...] = ()
    """Who proposed it, where there are several: drawn as their marks."""


class TreeModel:
    """Nodes and their order; every change of the tree's shape goes through `add` and `fold`."""

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
        """Append nodes, parents before children; the depths that grew.

        Raises ValueError for a number that is taken, a parent that is missing or a state that does not exist.
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
        """Whether it matters less than its siblings that live on."""
        return self.nodes[node].state in FAINT_STATES

    def path(self, node: int) -> list[int]:
        """From the root to `node`, both included."""
        path: list[int] = []
        here: int | None = node
        while here is not None:
            path.append(here)
            here = self.nodes[here].parent
        return path[::-1]

    def descendants(self, node: int, deepest: int | None = None) -> Iterator[int]:
        """Everything below `node`, no deeper than `deepest`."""
        waiting = [node]
        while waiting:
            here = waiting.pop()
            if deepest is not None and self.depth[here] >= deepest:
                continue
            below = self.children.get(here, ())
            yield from below
            waiting.extend(below)

    def count_below(self, node: int, deepest: int | None = None) -> int:
        """How many nodes stand below `node`."""
        return sum(1 for _ in self.descendants(node, deepest))

    def search(self, text: str, deepest: int | None = None) -> list[int]:
        """Nodes whose label contains `text`, whatever its case, from the root outwards."""
        wanted = text.casefold().replace(" ", "␣") if text.strip() == "" else text.casefold().strip()
        columns = self.columns if deepest is None else self.columns[: deepest + 1]
        if not wanted:
            return []
        return [node for column in columns for node in column if wanted in self.nodes[node].label.casefold()]
