"""Selection, highlighting and search matches of nodes, folded branches, and keyboard navigation between nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QObject, Signal, Slot

from app.widgets.tree_canvas.canvas_state import CanvasState
from app.widgets.tree_canvas.navigation import CanvasNavigation
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


class NodeSelection(QObject):
    """`select` is what the program does, `pick` what the reader does: it keeps the node in sight, and tells."""

    nodeSelected = Signal(int)
    """The reader picked a node."""
    selectionCleared = Signal()
    """The reader let go of it."""
    selectionChanged = Signal(int)
    """Another node is marked, by whomever."""

    def __init__(self, state: CanvasState, navigation: CanvasNavigation) -> None:
        super().__init__(state)
        self._state, self._navigation, self._scene = state, navigation, state.scene
        state.rearranged.connect(self._on_rearranged)

    @property
    def selected(self) -> int | None:
        """The selected node."""
        return self._state.style.selected

    @Slot(int)
    def select(self, node: int | None) -> bool:
        """Mark a node and the path to it, without telling; False when it was marked already."""
        if node is not None and node not in self._scene.model:
            node = None
        if node == self.selected:
            return False
        self._state.style.selected_path = self._scene.model.path(node) if node is not None else []
        self._state.restyled.emit(True)
        if node is not None:
            self.selectionChanged.emit(node)
        return True

    @Slot(int)
    def pick(self, node: int | None) -> None:
        """Select as the reader does; None lets go."""
        if node is not None:
            self._navigation.ensure_visible(node)
        if not self.select(node):
            return
        if node is None:
            self.selectionCleared.emit()
        else:
            self.nodeSelected.emit(node)

    def set_search_matches(self, nodes: Iterable[int]) -> None:
        """Mark what a search has found."""
        self._state.style.search_matches = frozenset(nodes)
        self._state.restyled.emit(False)

    def set_hovered(self, node: int | None) -> None:
        """Light up the node under the pointer."""
        if node != self._state.style.hovered:
            self._state.style.hovered = node
            self._state.restyled.emit(False)

    def toggle_fold(self, node: int) -> None:
        """Fold the subtree below a node away, or back; its own place on the widget stays."""
        folded, camera = self._scene.model.folded, self._state.camera
        if node in folded:
            folded.discard(node)
        elif self._scene.model.children.get(node):
            folded.add(node)
        else:
            return
        before = camera.rect_from_canvas(self._scene.box(node)).topLeft()
        self._state.rebuild()
        after = camera.rect_from_canvas(self._scene.box(node)).topLeft()
        self._navigation.pan(after.x() - before.x(), after.y() - before.y())
        self._state.changed.emit(True)

    @Slot()
    def _on_rearranged(self) -> None:
        """What was selected may have gone out of sight: the node that stands for it is selected then."""
        if self.selected is not None and not self._scene.is_shown(self.selected):
            self.pick(nearest_shown_ancestor(self._scene, self.selected))
