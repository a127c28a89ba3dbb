"""State of the tree canvas: the tree, its style and its camera, shared by drawing, navigation, selection and
accessibility.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, QPoint, QPointF, QRect, QRectF, Signal, Slot

from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.widgets.tree_canvas.geometry import LINE_GAP, READABLE_ZOOM, Camera, TreeMetrics
from decodescope.app.widgets.tree_canvas.tree_model import NodeState, TreeNode
from decodescope.app.widgets.tree_canvas.tree_painter import TreePainter, fold_text
from decodescope.app.widgets.tree_canvas.tree_scene import TreeScene
from decodescope.app.widgets.tree_canvas.tree_style import DIMMED, TreeStyle

FOLD_MARK_REACH = 60
"""Distance in pixels at 100 % from a point to boxes whose fold mark may be there."""


class ScreenPositions:
    """Positions of a scene as seen by a camera."""

    def __init__(self, scene: TreeScene, camera: Camera, painter: TreePainter) -> None:
        self._scene, self._camera, self._painter = scene, camera, painter

    def node_at(self, point: QPoint | QPointF) -> int | None:
        """Return the node at a point of the widget."""
        return self._scene.node_at(self._camera.to_canvas(QPointF(point)))

    def node_rect(self, node: int) -> QRect:
        """Return the rectangle of a node in the widget; empty if it is not shown."""
        if not self._scene.is_shown(node):
            return QRect()
        return self._camera.rect_from_canvas(self._scene.box(node)).toAlignedRect()

    def fold_mark_at(self, point: QPointF) -> int | None:
        """Return the node whose fold mark is at a point of the widget."""
        if self._camera.zoom < READABLE_ZOOM:
            return None
        canvas_point, style = self._camera.to_canvas(point), self._painter.style
        reach = FOLD_MARK_REACH * style.theme.scale
        for node in self._scene.nodes_in(
            QRectF(canvas_point.x() - reach, canvas_point.y() - reach, reach * 2, reach * 2)
        ):
            text = fold_text(self._scene, style, node)
            if text and self._painter.nodes.fold_mark_rect(self._scene.box(node), text).contains(canvas_point):
                return node
        return None


COMFORTABLE_ZOOM = 0.95
"""Zoom from which a tree in fewer lines is better than a larger one."""
PRUNED = ("shown", "dimmed", "hidden")


class CanvasState(QObject):
    """All changes of the tree or its style are made here and reported by signals."""

    changed = Signal(bool)
    """Layout or appearance changed; True if overviews should update at once."""
    restyled = Signal(bool)
    """Only the appearance changed; True if overviews are affected too."""
    cleared = Signal()
    """The tree was emptied."""
    replaced = Signal()
    """The whole layout was replaced; earlier canvas coordinates are invalid."""
    rearranged = Signal()
    """Some nodes were hidden or shown by folding or by their state."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.scene, self.camera = TreeScene(), Camera()
        self.style = TreeStyle(theme_for("light"))
        self.painter = TreePainter(self.scene, self.style)
        self.positions = ScreenPositions(self.scene, self.camera, self.painter)
        self._narrow = False

    # The tree

    def clear(self) -> None:
        """Empty the tree and follow it from its start."""
        self.scene.clear()
        style = self.style
        style.best_path, style.selected_path, style.search_matches, style.hovered = [], [], frozenset(), None
        self._apply_metrics()
        self.cleared.emit()
        self.changed.emit(True)

    def set_tree(self, nodes: Iterable[TreeNode]) -> None:
        """Show a complete tree with a balanced layout."""
        self.scene.layout.is_complete = True
        self.clear()
        self.scene.add(nodes)
        self._apply_metrics()
        self.replaced.emit()
        self.changed.emit(True)

    def add_nodes(self, nodes: Iterable[TreeNode]) -> None:
        """Append nodes; existing nodes do not move."""
        self.scene.layout.is_complete = False
        self.scene.add(nodes)
        self._apply_metrics()
        self.changed.emit(False)

    def lay_out_evenly(self) -> None:
        """Balance the layout of a tree that has stopped growing."""
        self.scene.layout.is_complete = True
        self.scene.rebuild()
        self.rearranged.emit()
        self.changed.emit(True)

    def set_states(self, states: Mapping[int, NodeState]) -> None:
        """Set states of nodes by id, and hide or show nodes accordingly."""
        nodes = self.scene.model.nodes
        for node, state in states.items():
            nodes[node].state = state
        self.rebuild()
        self.changed.emit(True)

    def fold(self, nodes: Iterable[int]) -> None:
        """Fold everything that will grow below these nodes."""
        self.scene.model.folded.update(nodes)

    def set_progress(self, progress: Mapping[int, tuple[int, int]]) -> None:
        """Set constraint marks of nodes by id; unknown ids are ignored."""
        for node in progress.keys() & self.scene.model.nodes.keys():
            self.scene.model.nodes[node].progress = progress[node]
        self.restyled.emit(False)

    def set_max_depth(self, depth: int | None) -> None:
        """Show the tree up to a depth; None shows all of it."""
        if depth != self.scene.max_depth:
            self.scene.max_depth = depth
            self.changed.emit(False)

    def set_best_path(self, path: Sequence[int]) -> None:
        """Mark the path of the best node, given from the root."""
        if list(path) != self.style.best_path:
            self.style.best_path = list(path)
            self.changed.emit(False)

    def set_lane_titles(self, titles: Mapping[int, str]) -> None:
        """Set the titles of the lanes."""
        self.style.lane_titles = dict(titles)
        self.restyled.emit(False)

    def unfold(self, nodes: Iterable[int] | None = None) -> None:
        """Unfold these nodes; None unfolds all."""
        folded = self.scene.model.folded
        opened = folded & set(folded if nodes is None else nodes)
        if opened:
            folded -= opened
            self.rebuild()
            self.changed.emit(True)

    @Slot()
    def rebuild(self) -> None:
        """Lay out every node again."""
        self.scene.rebuild()
        self.rearranged.emit()

    # Style

    def set_theme(self, theme: Theme) -> None:
        """Apply the colours and sizes of `theme`."""
        self.style.set_theme(theme)
        self._apply_metrics(force=True)
        self.changed.emit(True)

    def set_pruned(self, mode: str) -> None:
        """Show, dim or hide pruned branches. Raises ValueError for any other value."""
        if mode not in PRUNED:
            raise ValueError(f"Pruned nodes are {', '.join(PRUNED)}, not {mode!r}.")
        self.style.pruned = mode
        self.painter.restyle(self.style.theme, self.scene.metrics)
        hidden = DIMMED if mode == "hidden" else frozenset()
        if hidden != self.scene.layout.hidden:
            self.scene.layout.hidden = hidden
            self.rebuild()
        self.changed.emit(True)

    @property
    def is_top_down(self) -> bool:
        """Whether the tree grows downwards instead of to the right."""
        return self.scene.metrics.down

    def set_top_down(self, down: bool) -> None:
        """Set the direction of the tree."""
        if down != self.is_top_down:
            self._apply_metrics(down=down)
            self.replaced.emit()
            self.changed.emit(True)

    def set_narrow(self, narrow: bool) -> None:
        """Set whether boxes are narrower and closer together."""
        self._narrow = narrow
        self._apply_metrics()

    def wrap_to(self, width: float, height: float, max_zoom: float) -> None:
        """Break the tree into lines, so that all of it can be shown as large as possible in an area of this size; into
        as few lines as possible if several do equally well.
        """
        depths = self.scene.last_depth + 1
        if depths < 1:
            return

        def zoom(columns: int) -> float:
            wrapped = self._wrapped_metrics(columns)
            across = wrapped.line_tops[-1] + last_rows[columns] + 1
            return min(
                max_zoom,
                width / (wrapped.depth_pitch * (min(columns, depths) - 1) + wrapped.width),
                height / (wrapped.row_pitch * across - wrapped.row_pitch + wrapped.height),
            )

        last_rows = {}
        for columns in range(1, depths + 1):
            first, last = self.scene.line_extents(columns)[-1]
            last_rows[columns] = last - first
        best = max(range(1, depths + 1), key=lambda columns: (round(min(zoom(columns), COMFORTABLE_ZOOM), 3), columns))
        metrics = self._wrapped_metrics(best)
        if metrics != self.scene.metrics:
            self.scene.restyle(metrics)
            self.painter.restyle(self.style.theme, metrics)
            self.changed.emit(True)

    def _wrapped_metrics(self, columns: int) -> TreeMetrics:
        """Return the sizes of the tree in lines of `columns` depths, one below the other."""
        tops, moves, top = list[float](), list[float](), 0.0
        for first, last in self.scene.line_extents(columns):
            tops.append(top)
            moves.append(top - first)
            top += last - first + 1 + LINE_GAP
        return replace(self.scene.metrics, columns=columns, line_rows=tuple(moves), line_tops=tuple(tops))

    def _apply_metrics(self, force: bool = False, down: bool | None = None) -> None:
        tall = self.scene.metrics.tall if self.scene.model.nodes else False
        tall = tall or any(node.note for node in self._sample_nodes())
        shown = self.scene.metrics
        metrics = TreeMetrics(self.style.theme.scale, self.is_top_down if down is None else down, tall, self._narrow)
        if self.scene.model.nodes:  # a new tree starts in one line
            metrics = replace(metrics, columns=shown.columns, line_rows=shown.line_rows, line_tops=shown.line_tops)
        if force or metrics != self.scene.metrics:
            self.scene.restyle(metrics)
            self.painter.restyle(self.style.theme, metrics)

    def _sample_nodes(self) -> Iterable[TreeNode]:
        """Return enough nodes to see whether any has a second line."""
        first = (column[:1] for column in self.scene.model.columns[:3])
        return (self.scene.model.nodes[node] for column in first for node in column)
