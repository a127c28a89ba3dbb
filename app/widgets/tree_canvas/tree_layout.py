"""Tree layout: a column per depth and a row in it, computed for new nodes without moving old ones. No Qt.

Children keep the order of their parents, so edges of one lane never cross. Each column is laid out on its own: every
node is placed near its parent, neighbours are at least one row apart, and the rows with the least squared displacement
are found by pooling adjacent violators (Barlow, Bartholomew, Bremner and Brunk 1972), in time linear in the column.
Growth therefore costs only as much as the new nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from decodescope.app.widgets.tree_canvas.tree_model import TreeModel

LANE_GAP = 2.0
"""Rows between two lanes."""
STRONG_WEIGHT, WEAK_WEIGHT = 1.0, 0.02
"""Weights of the preferred rows of live nodes and of faint ones."""


@dataclass(slots=True)
class NodeColumn:
    """The nodes of one column and lane from top to bottom; rows are relative to the lane's centre."""

    nodes: list[int] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)

    def between(self, top: float, bottom: float) -> range:
        """Return the indices of nodes whose rows lie in [top, bottom]."""
        return range(bisect_left(self.rows, top), bisect_left(self.rows, bottom + 1e-6))


def fit_rows(preferred: Sequence[float], weights: Sequence[float], low: float, high: float) -> list[float]:
    """Return integer rows, in order and at least one apart, nearest to the `preferred` ones; inside [low, high] if they
    fit.
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, count
    for index, (row, weight) in enumerate(zip(preferred, weights, strict=True)):
        mean, total, count = row - index, weight, 1
        while blocks and blocks[-1][0] >= mean:
            before, weight_before, count_before = blocks.pop()
            mean = (before * weight_before + mean * total) / (weight_before + total)
            total, count = total + weight_before, count + count_before
        blocks.append((mean, total, count))
    last = high - (len(preferred) - 1)
    rows: list[float] = []
    for mean, _, count in blocks:
        start = float(round(max(low, min(mean, last)) if last >= low else mean))
        first = len(rows)
        rows.extend(start + first + n for n in range(count))
    return rows


class TreeLayout:
    """Rows of the shown nodes; `hidden` contains the states that are left out."""

    def __init__(self, model: TreeModel) -> None:
        self.model = model
        self.hidden: frozenset[str] = frozenset()
        self.is_complete = False
        """Whether parents are centred over their children, which a growing tree must not do."""
        self.clear()

    def clear(self) -> None:
        """Clear the layout."""
        self.rows: dict[int, float] = {}
        self.strips: list[dict[int | None, NodeColumn]] = []
        self.lane_rows: dict[int | None, tuple[float, float]] = {}
        self.lane_offsets: dict[int | None, float] = {}

    def rebuild(self) -> None:
        """Lay out everything again."""
        self.clear()
        self.grow(range(len(self.model.columns)))
        if self.is_complete:
            self._balance()

    def grow(self, depths: Iterable[int]) -> bool:
        """Lay out the columns that grew. Returns True if lanes, and thereby existing nodes, moved."""
        for depth in depths:
            while depth >= len(self.strips):
                self.strips.append({})
            self._place_column(depth)
        return self._stack_lanes()

    def row(self, node: int) -> float:
        """Return the row of a node over all lanes. Raises KeyError for a hidden node."""
        return self.lane_offsets[self.model.nodes[node].lane] + self.rows[node]

    def is_placed(self, node: int) -> bool:
        """Return whether the node is shown."""
        return node in self.rows

    @property
    def max_depth(self) -> int:
        """The deepest column with a node; -1 in an empty tree."""
        depths = range(len(self.strips) - 1, -1, -1)
        return next((depth for depth in depths if any(strip.nodes for strip in self.strips[depth].values())), -1)

    def column(self, depth: int) -> Iterator[tuple[float, NodeColumn]]:
        """Yield (lane's row offset, column) of a depth, from top to bottom."""
        strips = self.strips[depth] if 0 <= depth < len(self.strips) else {}
        for lane in sorted(strips, key=lambda lane: -1 if lane is None else lane):
            yield self.lane_offsets.get(lane, 0.0), strips[lane]

    def nodes_in(self, depth: int) -> list[int]:
        """Return the shown nodes of a depth from top to bottom."""
        return [node for _, strip in self.column(depth) for node in strip.nodes]

    def extent(self) -> tuple[float, float]:
        """Return the first and last used row."""
        if not self.lane_rows:
            return 0.0, 0.0
        ends = [
            (self.lane_offsets[lane] + low, self.lane_offsets[lane] + high)
            for lane, (low, high) in self.lane_rows.items()
        ]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def lanes(self) -> list[tuple[int, float, float]]:
        """Return (lane, first row, last row) of every numbered lane."""
        lanes = sorted(lane for lane in self.lane_rows if lane is not None)
        return [
            (lane, self.lane_offsets[lane] + self.lane_rows[lane][0], self.lane_offsets[lane] + self.lane_rows[lane][1])
            for lane in lanes
        ]

    # One column

    def _is_shown(self, node: int) -> bool:
        spec = self.model.nodes[node]
        if spec.state in self.hidden:
            return False
        return spec.parent is None or (spec.parent in self.rows and spec.parent not in self.model.folded)

    def _place_column(self, depth: int) -> None:
        by_lane: dict[int | None, list[int]] = {}
        for node in self._in_order(depth):
            by_lane.setdefault(self.model.nodes[node].lane, []).append(node)
        for lane, nodes in by_lane.items():
            self._fit_lane(depth, lane, nodes, self._rows_near_parents(nodes, lane))

    def _in_order(self, depth: int) -> list[int]:
        """Return the shown nodes of a column in the order of their parents; live children come before faint ones."""
        if depth == 0:
            return [node for node in self.model.columns[0] if self._is_shown(node)]
        children, ordered = self.model.children, []
        for parent in self.nodes_in(depth - 1):
            family = [node for node in children.get(parent, ()) if self._is_shown(node)]
            ordered += sorted(family, key=self.model.is_faint)
        return ordered

    def _rows_near_parents(self, nodes: Sequence[int], lane: int | None) -> list[float]:
        """Return the preferred rows: around the parent, live children nearest to it."""
        preferred: list[float] = []
        for parent, family in _sibling_groups(self.model, nodes):
            start = 0.0
            if parent is not None and self.model.nodes[parent].lane == lane:
                start = self.rows[parent]
            strong = [n for n, node in enumerate(family) if not self.model.is_faint(node)] or [0]
            anchor = (strong[0] + strong[-1]) // 2
            preferred.extend(start + n - anchor for n in range(len(family)))
        return preferred

    def _fit_lane(self, depth: int, lane: int | None, nodes: list[int], preferred: Sequence[float]) -> None:
        low, high = self.lane_rows.get(lane, (0.0, 0.0))
        max_extent = max(len(nodes) * 0.75, (high - low) / 2)
        weights = [WEAK_WEIGHT if self.model.is_faint(node) else STRONG_WEIGHT for node in nodes]
        rows = fit_rows(preferred, weights, -max_extent, max_extent)
        self.strips[depth][lane] = NodeColumn(nodes, rows)
        self.rows.update(zip(nodes, rows, strict=True))
        if rows:
            self.lane_rows[lane] = (min(low, rows[0]), max(high, rows[-1]))

    def _stack_lanes(self) -> bool:
        """Stack the lanes vertically; nodes without a lane are centred. Returns True if an existing lane moved."""
        before = dict(self.lane_offsets)
        lanes, below = sorted(lane for lane in self.lane_rows if lane is not None), 0.0
        for number, lane in enumerate(lanes):
            low, high = self.lane_rows[lane]
            self.lane_offsets[lane] = 0.0 if number == 0 else below + LANE_GAP - low
            below = self.lane_offsets[lane] + high
        if None in self.lane_rows:
            first = self.lane_offsets[lanes[0]] + self.lane_rows[lanes[0]][0] if lanes else 0.0
            self.lane_offsets[None] = round(first + below) / 2
        return any(self.lane_offsets[lane] != row for lane, row in before.items())

    # Complete trees

    def _balance(self) -> None:
        """Centre parents over their children, then move children near their parents again."""

        def amid_children(nodes: Sequence[int], lane: int | None) -> list[float]:
            return [self._middle_of_children(node, lane) for node in nodes]

        for depth in range(len(self.strips) - 2, -1, -1):
            self._refit(depth, amid_children)
        for depth in range(1, len(self.strips)):
            self._refit(depth, self._rows_near_parents)
        for depth in range(len(self.strips) - 2, -1, -1):
            self._refit(depth, amid_children)
        self.lane_rows = _extents(self.strips)
        self._stack_lanes()

    def _refit(self, depth: int, preferred_rows: Callable[[Sequence[int], int | None], Sequence[float]]) -> None:
        for lane, strip in self.strips[depth].items():
            self._fit_lane(depth, lane, strip.nodes, preferred_rows(strip.nodes, lane))

    def _middle_of_children(self, node: int, lane: int | None) -> float:
        below = [n for n in self.model.children.get(node, ()) if n in self.rows and self.model.nodes[n].lane == lane]
        live = [n for n in below if not self.model.is_faint(n)] or below
        return (self.rows[live[0]] + self.rows[live[-1]]) / 2 if live else self.rows[node]


def _extents(strips: Iterable[dict[int | None, NodeColumn]]) -> dict[int | None, tuple[float, float]]:
    """Return the first and last row of every lane."""
    reach: dict[int | None, tuple[float, float]] = {}
    for column in strips:
        for lane, strip in column.items():
            low, high = reach.get(lane, (strip.rows[0], strip.rows[-1]))
            reach[lane] = (min(low, strip.rows[0]), max(high, strip.rows[-1]))
    return reach


def _sibling_groups(model: TreeModel, nodes: Sequence[int]) -> Iterator[tuple[int | None, list[int]]]:
    """Yield runs of adjacent nodes with the same parent."""
    start = 0
    for place in range(1, len(nodes) + 1):
        parent = model.nodes[nodes[start]].parent
        if place == len(nodes) or model.nodes[nodes[place]].parent != parent:
            yield parent, list(nodes[start:place])
            start = place
