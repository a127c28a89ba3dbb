"""The tree with positions: boxes of nodes, queries by rectangle, and cached shapes for small zooms."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath, QPolygonF

from decodescope.app.widgets.tree_canvas.geometry import TreeMetrics
from decodescope.app.widgets.tree_canvas.tree_layout import NodeColumn, TreeLayout
from decodescope.app.widgets.tree_canvas.tree_model import TreeModel, TreeNode

BLOCK_DEPTHS, BLOCK_ROWS = 8, 64
WEIGHT_CLASSES = 3
"""Weight classes of edges drawn in bulk, one pixel wide: heavier edges have stronger colours."""
TITLE_ROWS = 0.7
"""Rows reserved for a lane's title above its first row."""
MAX_BUNDLE_EDGES = 12
"""Approximate maximum of edges drawn per column among those that leave the visible part side by side."""


@dataclass(slots=True)
class NodeBatch:
    """Shapes of neighbouring nodes by state, drawn with a few calls."""

    bounds: QRectF = field(default_factory=QRectF)
    boxes: dict[str, list[QRectF]] = field(default_factory=dict)
    centers: dict[str, QPolygonF] = field(default_factory=dict)
    lines: dict[str, QPainterPath] = field(default_factory=dict)
    curves: dict[tuple[str, int], QPainterPath] = field(default_factory=dict)

    def add_node(self, spec: TreeNode, box: QRectF, parent: QRectF | None, metrics: TreeMetrics) -> None:
        """Add a node's box, and the edge from its parent."""
        state = spec.state
        self.boxes.setdefault(state, []).append(box)
        self.centers.setdefault(state, QPolygonF()).append(box.center())
        self.bounds = self.bounds.united(box)
        if parent is None:
            return
        start, end = metrics.edge_start(parent), metrics.edge_end(box)
        thick = min(WEIGHT_CLASSES - 1, int(spec.weight * WEIGHT_CLASSES))
        curve = self.curves.setdefault((state, thick), QPainterPath())
        if metrics.columns:
            way = metrics.edge_path(parent, box)
            curve.addPath(way)
            self.lines.setdefault(state, QPainterPath()).addPath(way)
            self.bounds = self.bounds.united(way.controlPointRect()).united(parent)
            return
        line = self.lines.setdefault(state, QPainterPath())
        line.moveTo(start)
        line.lineTo(end)
        curve.moveTo(start)
        curve.cubicTo(*metrics.control_points(start, end), end)
        self.bounds = self.bounds.united(parent)


class TreeScene:
    """Model, layout and sizes. `max_depth` is the last shown depth (None: all)."""

    def __init__(self) -> None:
        self.model = TreeModel()
        self.layout = TreeLayout(self.model)
        self.metrics = TreeMetrics()
        self.max_depth: int | None = None
        self._blocks: dict[tuple[int, int], list[NodeBatch]] = {}

    def clear(self) -> None:
        """Empty the tree."""
        hidden, settled = self.layout.hidden, self.layout.is_complete
        self.model = TreeModel()
        self.layout = TreeLayout(self.model)
        self.layout.hidden, self.layout.is_complete = hidden, settled
        self.max_depth = None
        self._blocks.clear()

    def add(self, nodes: Iterable[TreeNode]) -> None:
        """Append nodes without moving existing ones."""
        depths = self.model.add(nodes)
        if self.layout.is_complete:
            self.rebuild()
        elif self.layout.grow(depths):
            self._blocks.clear()
        else:
            self.invalidate(depths)

    def rebuild(self) -> None:
        """Lay out everything again after folding, hiding or turning."""
        self.layout.rebuild()
        self._blocks.clear()

    def restyle(self, metrics: TreeMetrics) -> None:
        """Apply other sizes."""
        if metrics != self.metrics:
            self.metrics = metrics
            self._blocks.clear()

    def invalidate(self, depths: Iterable[int]) -> None:
        """Discard the cached shapes of these depths."""
        stale = {(depth + after) // BLOCK_DEPTHS for depth in depths for after in (0, 1)}
        for key in [key for key in self._blocks if key[0] in stale]:
            del self._blocks[key]

    def line_extents(self, columns: int) -> list[tuple[float, float]]:
        """Return (first, last) row of each line if the tree were broken into lines of `columns` depths."""
        extents = []
        for start in range(0, self.last_depth + 1, columns):
            depths = range(start, min(start + columns, self.last_depth + 1))
            rows = [base + row for depth in depths for base, strip in self.layout.column(depth) for row in strip.rows]
            extents.append((min(rows), max(rows)))
        return extents

    # Positions

    @property
    def last_depth(self) -> int:
        """The last shown depth; -1 in an empty tree."""
        end = self.layout.max_depth
        return end if self.max_depth is None else min(end, self.max_depth)

    def is_shown(self, node: int | None) -> bool:
        """Return whether the node is drawn."""
        return node is not None and self.layout.is_placed(node) and self.model.depth[node] <= self.last_depth

    def box(self, node: int) -> QRectF:
        """Return the box of a shown node. Raises KeyError for a hidden node."""
        return self.metrics.box(self.model.depth[node], self.layout.row(node))

    def bounds(self) -> QRectF:
        """Return the rectangle around all shown nodes."""
        if self.last_depth < 0:
            return QRectF()
        first, last = self.layout.extent()
        if self.metrics.columns:
            boxes = [self.box(node) for depth in range(self.last_depth + 1) for node in self.layout.nodes_in(depth)]
            return reduce(QRectF.united, boxes)
        titled = len(self.layout.lanes()) > 1
        return self.metrics.area((0, self.last_depth), (first - TITLE_ROWS if titled else first, last))

    def depths_in(self, rect: QRectF) -> range:
        """Return the depths that can have something in `rect`."""
        first, last = self.metrics.depths_in(rect)
        return range(max(0, first), min(self.last_depth, last) + 1)

    def nodes_in(self, rect: QRectF) -> Iterator[int]:
        """Yield the shown nodes whose boxes reach into `rect`."""
        top, bottom = self.metrics.rows_in(rect)
        for depth in self.depths_in(rect):
            for base, strip in self.layout.column(depth):
                for index in strip.between(top - base, bottom - base):
                    yield strip.nodes[index]

    def node_at(self, point: QPointF) -> int | None:
        """Return the node at a point of the canvas."""
        spot = QRectF(point, point)
        return next((node for node in self.nodes_in(spot) if self.box(node).contains(point)), None)

    def edges_in(self, rect: QRectF) -> Iterator[tuple[int, int]]:
        """Yield (parent, child) of edges that may pass through `rect`; dense bundles are thinned out."""
        top, bottom = self.metrics.rows_in(rect)
        for depth in self.depths_in(rect):
            for base, strip in self.layout.column(depth):
                for index in self._children_with_visible_edges(strip, top - base, bottom - base):
                    parent = self.model.nodes[strip.nodes[index]].parent
                    if parent is not None:
                        yield parent, strip.nodes[index]

    def _children_with_visible_edges(self, strip: NodeColumn, top: float, bottom: float) -> Iterator[int]:
        """Yield the indices of visible children, and of some hidden ones whose edges are visible."""
        hull, here = self._edge_range(strip, top, bottom), strip.between(top, bottom)
        yield from here
        for bundle in (range(hull.start, here.start), range(here.stop, hull.stop)):
            yield from bundle[:: max(1, len(bundle) // MAX_BUNDLE_EDGES)]

    def _edge_range(self, strip: NodeColumn, top: float, bottom: float) -> range:
        """Return the range of visible children and of those with visible parents. The order makes it one range."""
        here = strip.between(top, bottom)
        before, after = range(here.start), range(here.stop, len(strip.nodes))
        first = bisect_left(before, top, key=lambda place: self._parent_row(strip.nodes[place]))
        last = here.stop + bisect_right(after, bottom, key=lambda place: self._parent_row(strip.nodes[place]))
        return range(first, last)

    def _parent_row(self, child: int) -> float:
        """Return the parent's row, relative to the child's lane."""
        spec = self.model.nodes[child]
        if spec.parent is None:
            return self.layout.rows[child]
        lane = self.model.nodes[spec.parent].lane
        return self.layout.rows[spec.parent] + self.layout.lane_offsets[lane] - self.layout.lane_offsets[spec.lane]

    # Shapes for small zooms

    def blocks(self, rect: QRectF) -> Iterator[NodeBatch]:
        """Yield the cached shapes of everything that may reach into `rect`."""
        depths = self.depths_in(rect)
        if not depths:
            return
        for number in range(depths[0] // BLOCK_DEPTHS, depths[-1] // BLOCK_DEPTHS + 1):
            for block in self._blocks_of(number):
                if block.bounds.intersects(rect):
                    yield block

    def _blocks_of(self, number: int) -> list[NodeBatch]:
        first = number * BLOCK_DEPTHS
        end = min(self.last_depth + 1, first + BLOCK_DEPTHS)
        if (number, end) not in self._blocks:
            for key in [key for key in self._blocks if key[0] == number]:
                del self._blocks[key]
            self._blocks[number, end] = self._make_blocks(range(first, end))
        return self._blocks[number, end]

    def _make_blocks(self, depths: range) -> list[NodeBatch]:
        chunks: dict[int, NodeBatch] = {}
        for depth in depths:
            for base, strip in self.layout.column(depth):
                for node, row in zip(strip.nodes, strip.rows, strict=True):
                    block = chunks.setdefault(int((base + row) // BLOCK_ROWS), NodeBatch())
                    spec = self.model.nodes[node]
                    parent = self.box(spec.parent) if spec.parent is not None else None
                    block.add_node(spec, self.metrics.box(depth, base + row), parent, self.metrics)
        return list(chunks.values())
