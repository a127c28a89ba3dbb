"""The canvas for trees: one widget that pans, zooms, folds, follows growth and is walked by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, Qt, Signal, Slot
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from app.theme.theme import Theme, theme_for
from app.widgets.tree_canvas import accessible, walking
from app.widgets.tree_canvas.geometry import READABLE, Camera, Metrics
from app.widgets.tree_canvas.input import Hands
from app.widgets.tree_canvas.minimap import Minimap
from app.widgets.tree_canvas.model import TreeNode
from app.widgets.tree_canvas.painter import TreePainter
from app.widgets.tree_canvas.scene import Scene
from app.widgets.tree_canvas.style import DIMMED, Look

PRUNED = ("shown", "dimmed", "hidden")
FOLLOW_ZOOM = 0.78
"""While it follows, the canvas shrinks a growing tree down to this and scrolls from then on."""


class TreeCanvas(QWidget):
    """A tree of `TreeNode`s.

    `nodeSelected(id)`: the user picked a node; `nothingSelected()`: the user let go of it; `followChanged(on)`: it
    began or ceased to keep the newest nodes in sight; `typed(text)`: the user began to type, to find a node.
    """

    nodeSelected = Signal(int)
    nothingSelected = Signal()
    followChanged = Signal(bool)
    typed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        accessible.install()
        super().__init__(parent)
        theme = theme_for("light")
        self.scene, self.camera = Scene(), Camera()
        self._look = Look(theme)
        self._painter = TreePainter(self.scene, self._look)
        self._minimap = Minimap(self.scene, self._look, self)
        self._minimap.moved.connect(self.centre_on)
        self._hands = Hands(self)
        self._items: accessible.TreeItems | None = None
        self._follow, self._shrinks = True, True
        self._narrow = False
        self.describe: Callable[[int], str] = lambda node: ""
        """Text of the tip that appears over a node."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Tree")
        self.setMinimumSize(120, 80)

    # The tree

    def clear(self) -> None:
        """An empty tree, followed from its beginning."""
        if self._items is not None:
            self._items.release()
        self.scene.clear()
        self._look.best, self._look.trail, self._look.found = [], [], frozenset()
        self._look.hovered = None
        self._shrinks = True
        self._apply_metrics()
        self._changed(at_once=True)

    def set_tree(self, nodes: Iterable[TreeNode]) -> None:
        """Show a complete tree, laid out evenly and fitted into the widget."""
        self.scene.layout.settled = True
        self.clear()
        self.scene.add(nodes)
        self._apply_metrics()
        self.fit()
        self._changed(at_once=True)

    def add_nodes(self, nodes: Iterable[TreeNode]) -> None:
        """Let the tree grow at its ends; nothing that stands moves."""
        self.scene.layout.settled = False
        self.scene.add(nodes)
        self._apply_metrics()
        self._changed()

    def set_progress(self, progress: Mapping[int, tuple[int, int]]) -> None:
        """Other marks for nodes by number; strangers are left alone."""
        for node in progress.keys() & self.scene.model.nodes.keys():
            self.scene.model.nodes[node].progress = progress[node]
        self.update()

    def reveal_depth(self, depth: int | None) -> None:
        """Show the tree up to that depth only; None for all of it."""
        if depth != self.scene.deepest:
            self.scene.deepest = depth
            self._changed()

    def set_best(self, path: Sequence[int]) -> None:
        """Mark the path of the leading node, given from the root."""
        if list(path) != self._look.best:
            self._look.best = list(path)
            self._changed()

    @property
    def best_path(self) -> list[int]:
        """The leading path, from the root."""
        return self._look.best

    def set_lane_titles(self, titles: Mapping[int, str]) -> None:
        """Names of the bands."""
        self._look.lanes = dict(titles)
        self.update()

    # Look

    def set_theme(self, theme: Theme) -> None:
        """Other colours and sizes."""
        self._look.set_theme(theme)
        self._apply_metrics(anew=True)
        self._changed(at_once=True)

    @property
    def pruned(self) -> str:
        """How branches that died are drawn: shown, dimmed or hidden."""
        return self._look.pruned

    def set_pruned(self, how: str) -> None:
        """Show, dim or hide them. Raises ValueError for other words."""
        if how not in PRUNED:
            raise ValueError(f"Pruned nodes are {', '.join(PRUNED)}, not {how!r}.")
        self._look.pruned = how
        self._painter.restyle(self._look.theme, self.scene.metrics)
        hidden = DIMMED if how == "hidden" else frozenset()
        if hidden != self.scene.layout.hidden:
            self.scene.layout.hidden = hidden
            self._rearranged()
        self._changed(at_once=True)

    @property
    def down(self) -> bool:
        """Whether the tree grows downwards instead of to the right."""
        return self.scene.metrics.down

    def set_down(self, down: bool) -> None:
        """Turn the tree."""
        if down != self.down:
            self._apply_metrics(down=down)
            self.fit()
            self._changed(at_once=True)

    def set_narrow(self, narrow: bool) -> None:
        """Boxes narrower and closer together, or as usual."""
        self._narrow = narrow
        self._apply_metrics()

    def _apply_metrics(self, anew: bool = False, down: bool | None = None) -> None:
        tall = self.scene.metrics.tall if self.scene.model.nodes else False
        tall = tall or any(node.note for node in self._some_nodes())
        metrics = Metrics(self._look.theme.scale, self.down if down is None else down, tall, self._narrow)
        if anew or metrics != self.scene.metrics:
            self.scene.restyle(metrics)
            self._painter.restyle(self._look.theme, metrics)

    def _some_nodes(self) -> Iterable[TreeNode]:
        """Enough nodes to see whether they have second lines."""
        first = (column[:1] for column in self.scene.model.columns[:3])
        return (self.scene.model.nodes[node] for column in first for node in column)

    # Selection

    @property
    def selected(self) -> int | None:
        """The selected node."""
        return self._look.selected

    @Slot(int)
    def select(self, node: int | None) -> bool:
        """Mark a node and the path to it, without a signal; False when it was marked already."""
        if node is not None and node not in self.scene.model:
            node = None
        if node == self.selected:
            return False
        self._look.trail = self.scene.model.path(node) if node is not None else []
        self._minimap.tree_changed()
        self.update()
        if node is not None:
            accessible.say_focus(self, node)
        return True

    def pick(self, node: int | None) -> None:
        """Select as the user does: keep it in sight, and tell."""
        if node is None:
            if self.select(None):
                self.nothingSelected.emit()
            return
        self.ensure_visible(node)
        if self.select(node):
            self.nodeSelected.emit(node)

    def set_found(self, nodes: Iterable[int]) -> None:
        """Mark what a search has found."""
        self._look.found = frozenset(nodes)
        self.update()

    def accessible_items(self) -> accessible.TreeItems:
        """What screen readers walk."""
        if self._items is None:
            items = self._items = accessible.TreeItems(self)
            self.destroyed.connect(items.release)
        return self._items

    # Folding

    def toggle_fold(self, node: int) -> None:
        """Fold the subtree below a node away, or back; its own place on the widget stays."""
        folded = self.scene.model.folded
        if node in folded:
            folded.discard(node)
        elif self.scene.model.children.get(node):
            folded.add(node)
        else:
            return
        before = self.camera.rect_from_canvas(self.scene.box(node)).topLeft()
        self._rearranged()
        after = self.camera.rect_from_canvas(self.scene.box(node)).topLeft()
        self.pan(after.x() - before.x(), after.y() - before.y())
        self._changed(at_once=True)

    def unfold_all(self) -> None:
        """Nothing is folded any more."""
        if self.scene.model.folded:
            self.scene.model.folded.clear()
            self._rearranged()
            self._changed(at_once=True)

    def _rearranged(self) -> None:
        self.scene.rebuild()
        if self.selected is not None and not self.scene.shown(self.selected):
            self.pick(walking.nearest_shown(self.scene, self.selected))

    # Moving about

    @Slot()
    def fit(self) -> None:
        """All of the tree in sight."""
        margin = 28 * self._look.theme.scale
        bounds = self.scene.bounds()
        if bounds.isEmpty() or not self.width():
            return
        self.camera.show(bounds, max(1.0, self.width() - 2 * margin), max(1.0, self.height() - 2 * margin))
        self.camera.x -= margin / self.camera.zoom
        self.camera.y -= margin / self.camera.zoom
        self._shrinks = True
        self._moved()

    def pan(self, dx: float, dy: float) -> None:
        """Move the view over the canvas by that many pixels of the widget."""
        self.camera.x += dx / self.camera.zoom
        self.camera.y += dy / self.camera.zoom
        self._moved()

    def zoom_by(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom in or out around a point of the widget, its middle if none is given."""
        if self.camera.zoom_at(at if at is not None else QRectF(self.rect()).center(), factor):
            self._shrinks = False
            self._moved()

    @property
    def zoom(self) -> float:
        """1 is the natural size."""
        return self.camera.zoom

    def set_zoom(self, zoom: float) -> None:
        """Zoom around the middle."""
        self.zoom_by(zoom / self.camera.zoom)

    @Slot(QPointF)
    def centre_on(self, point: QPointF) -> None:
        """Bring a point of the canvas to the middle of the widget."""
        self.set_follow(False)
        self.camera.x = point.x() - self.width() / 2 / self.camera.zoom
        self.camera.y = point.y() - self.height() / 2 / self.camera.zoom
        self._moved()

    def ensure_visible(self, node: int) -> None:
        """Unfold what hides a node, and move no further than needed for it to be in sight."""
        path = self.scene.model.path(node)
        if self.scene.model.folded.intersection(path[:-1]):
            self.scene.model.folded.difference_update(path[:-1])
            self.scene.rebuild()
            self._changed(at_once=True)
        if self.scene.shown(node):
            self._reveal(self.scene.box(node))

    def _reveal(self, rect: QRectF) -> None:
        margin = min(40 * self._look.theme.scale, self.width() / 6, self.height() / 6)
        if self.camera.reveal(rect, QRectF(self.rect()).adjusted(margin, margin, -margin, -margin)):
            self._moved()

    @property
    def follow(self) -> bool:
        """Whether the newest nodes are kept in sight while the tree grows."""
        return self._follow

    @Slot(bool)
    def set_follow(self, on: bool) -> None:
        """Begin or cease to follow the growth."""
        if on != self._follow:
            self._follow = on
            self.followChanged.emit(on)
        if on:
            self._keep_frontier()

    def _keep_frontier(self) -> None:
        """Fit a small tree; of a large one, keep the newest column in sight."""
        if self.scene.last < 0 or not self.width():
            return
        if self._shrinks:
            self.fit()
            if self.camera.zoom >= FOLLOW_ZOOM:
                return
            self.camera.zoom = FOLLOW_ZOOM
        self._reveal(self._frontier())
        self._use_room()

    def _frontier(self) -> QRectF:
        """Around the newest boxes that live; around one of them, and some room, when they do not fit into the view."""
        model, scene = self.scene.model, self.scene
        column = scene.layout.nodes_in(scene.last)
        newest = [n for n in column if model.nodes[n].state not in DIMMED] or column
        view = self.camera.rect_to_canvas(QRectF(self.rect()))
        around = scene.box(newest[0]).united(scene.box(newest[-1]))
        if around.height() <= view.height() * 0.8 and around.width() <= view.width() * 0.8:
            return around
        leading = set(self._look.best).intersection(newest)
        box = scene.box(next(iter(leading), newest[len(newest) // 2]))
        room = (view.width() * 0.3, 0.0) if self.down else (0.0, view.height() * 0.3)
        return box.adjusted(-room[0], -room[1], room[0], room[1])

    def _use_room(self) -> None:
        """Show no empty ground above or below (beside, where the tree grows down) that the tree could fill."""
        bounds, margin = self.scene.bounds(), 28 * self._look.theme.scale / self.camera.zoom
        width, height = self.width() / self.camera.zoom, self.height() / self.camera.zoom
        if self.down:
            self.camera.x = _within(self.camera.x, bounds.left() - margin, bounds.right() + margin - width)
        else:
            self.camera.y = _within(self.camera.y, bounds.top() - margin, bounds.bottom() + margin - height)

    # What changed

    def _changed(self, at_once: bool = False) -> None:
        if self._follow:
            self._keep_frontier()
        self._minimap.fit_into(self.width(), self.height())
        self._minimap.tree_changed(at_once)
        self._moved()

    def _moved(self) -> None:
        self._minimap.set_frame(self.camera.rect_to_canvas(QRectF(self.rect())))
        self.update()

    # Places

    def node_at(self, point: QPoint | QPointF) -> int | None:
        """The node drawn at a point of the widget."""
        return self.scene.node_at(self.camera.to_canvas(QPointF(point)))

    def node_rect(self, node: int) -> QRect:
        """Where a node is drawn in the widget; empty when it is not shown."""
        if not self.scene.shown(node):
            return QRect()
        return self.camera.rect_from_canvas(self.scene.box(node)).toAlignedRect()

    def fold_mark_at(self, point: QPointF) -> int | None:
        """The node whose fold mark is drawn at a point of the widget."""
        if self.camera.zoom < READABLE:
            return None
        place = self.camera.to_canvas(point)
        reach = 60 * self._look.theme.scale
        for node in self.scene.nodes_in(QRectF(place.x() - reach, place.y() - reach, reach * 2, reach * 2)):
            text = self._painter.fold_text(node)
            if text and self._painter.nodes.fold_mark(self.scene.box(node), text).contains(place):
                return node
        return None

    # Events

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is in sight."""
        painter = QPainter(self)
        painter.fillRect(event.rect(), self._look.theme.color("window"))
        self._look.focused = self.hasFocus()
        if self.scene.last >= 0:
            self._painter.paint(painter, self.camera, QRectF(event.rect()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep following, or keep the middle where it was."""
        if event.oldSize().isValid() and not self._follow:
            grown = event.size() - event.oldSize()
            self.camera.x -= grown.width() / 2 / self.camera.zoom
            self.camera.y -= grown.height() / 2 / self.camera.zoom
        self._changed()

    def set_hovered(self, node: int | None) -> None:
        """Light up the node under the pointer."""
        if node != self._look.hovered:
            self._look.hovered = node
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Pick a node, fold, or begin to drag the canvas."""
        self._hands.press(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag the canvas, or light up what is under the pointer."""
        self._hands.move(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """End of a drag."""
        self._hands.release(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Fold a node; on the ground, show everything."""
        self._hands.double_click(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom to the pointer; with Shift, or two fingers on a pad, move."""
        self._hands.wheel(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk, move, zoom, fold; letters begin a search."""
        if not self._hands.key(event):
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """The pointer went elsewhere."""
        self.set_hovered(None)
        super().leaveEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Say where one is."""
        super().focusInEvent(event)
        if self.selected is not None:
            accessible.say_focus(self, self.selected)

    def event(self, event: QEvent) -> bool:
        """Tips over nodes, and two fingers that zoom."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            if event.key() == Qt.Key.Key_Escape and self.selected is not None:
                event.accept()  # it lets go of the node before it stops a run
                return True
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            node = self.node_at(event.pos())
            text = self.describe(node) if node is not None else ""
            QToolTip.showText(event.globalPos(), text, self, self.node_rect(node) if node is not None else QRect())
            return True
        if isinstance(event, QNativeGestureEvent) and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
            self.zoom_by(1 + event.value(), event.position())
            return True
        return super().event(event)


def _within(place: float, first: float, last: float) -> float:
    """`place` inside [first, last]; their middle where there is no inside."""
    return (first + last) / 2 if last < first else min(max(place, first), last)
