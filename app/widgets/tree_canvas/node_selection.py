"""The node that is selected, lit up or found, and the branches that are folded away."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QObject, Signal, Slot

from app.widgets.tree_canvas import keyboard_navigation
from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.navigation import CanvasNavigation


class NodeSelection(QObject):
    """`select` is what the program does, `pick` what the reader does: it keeps the node in sight, and tells."""

    nodeSelected = Signal(int)
    """The reader picked a node."""
    nothingSelected = Signal()
    """The reader let go of it."""
    marked = Signal(int)
    """Another node is marked, by whomever."""

    def __init__(self, stage: CanvasState, travel: CanvasNavigation) -> None:
        super().__init__(stage)
        self._stage, self._travel, self._scene = stage, travel, stage.scene
        stage.rearranged.connect(self._on_rearranged)

    @property
    def selected(self) -> int | None:
        """The selected node."""
        return self._stage.look.selected

    @Slot(int)
    def select(self, node: int | None) -> bool:
        """Mark a node and the path to it, without telling; False when it was marked already."""
        if node is not None and node not in self._scene.model:
            node = None
        if node == self.selected:
            return False
        self._stage.look.trail = self._scene.model.path(node) if node is not None else []
        self._stage.touched.emit(True)
        if node is not None:
            self.marked.emit(node)
        return True

    @Slot(int)
    def pick(self, node: int | None) -> None:
        """Select as the reader does; None lets go."""
        if node is not None:
            self._travel.ensure_visible(node)
        if not self.select(node):
            return
        if node is None:
            self.nothingSelected.emit()
        else:
            self.nodeSelected.emit(node)

    def set_found(self, nodes: Iterable[int]) -> None:
        """Mark what a search has found."""
        self._stage.look.found = frozenset(nodes)
        self._stage.touched.emit(False)

    def set_hovered(self, node: int | None) -> None:
        """Light up the node under the pointer."""
        if node != self._stage.look.hovered:
            self._stage.look.hovered = node
            self._stage.touched.emit(False)

    def toggle_fold(self, node: int) -> None:
        """Fold the subtree below a node away, or back; its own place on the widget stays."""
        folded, camera = self._scene.model.folded, self._stage.camera
        if node in folded:
            folded.discard(node)
        elif self._scene.model.children.get(node):
            folded.add(node)
        else:
            return
        before = camera.rect_from_canvas(self._scene.box(node)).topLeft()
        self._stage.rebuild()
        after = camera.rect_from_canvas(self._scene.box(node)).topLeft()
        self._travel.pan(after.x() - before.x(), after.y() - before.y())
        self._stage.changed.emit(True)

    @Slot()
    def _on_rearranged(self) -> None:
        """What was selected may have gone out of sight: the node that stands for it is selected then."""
        if self.selected is not None and not self._scene.shown(self.selected):
            self.pick(keyboard_navigation.nearest_shown(self._scene, self.selected))
