"""Selection, highlighting and search matches of nodes, folded branches, and keyboard navigation between nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.widgets.tree_canvas.canvas_state import CanvasState
from decodescope.app.widgets.tree_canvas.navigation import CanvasNavigation
from decodescope.app.widgets.tree_canvas.tree_scene import TreeScene


def parent_of(scene: TreeScene, node: int) -> int:
    """Return the parent, or the node itself at the root."""
    above = scene.model.nodes[node].parent
    return node if above is None else above


def preferred_child(scene: TreeScene, node: int, preferred: Sequence[int] = ()) -> int:
    """Return the shown child to move to: the one on the `preferred` path, else one with children, else the first."""
    below = [n for n in scene.model.children.get(node, ()) if scene.is_shown(n)]
    if not below:
        return node
    liked = set(preferred).intersection(below)
    grown = [n for n in below if scene.model.children.get(n)]
    return next(iter(liked), grown[0] if grown else below[0])


def neighbour(scene: TreeScene, node: int, steps: int) -> int:
    """Return the node `steps` above or below in the same column, limited to its ends."""
    column = scene.layout.nodes_in(scene.model.depth[node])
    index = column.index(node) + steps
    return column[min(max(index, 0), len(column) - 1)]


def nearest_shown_ancestor(scene: TreeScene, node: int) -> int | None:
    """Return `node`, or its nearest shown ancestor if it is folded away or deeper than the shown depth."""
    here: int | None = node if node in scene.model else None
    while here is not None and not scene.is_shown(here):
        here = scene.model.nodes[here].parent
    return here


class NodeSelection(QObject):
    """`select` is for the program; `pick` is for the user: it also makes the node visible and emits a signal."""

    nodeSelected = Signal(int)
    """The user selected a node."""
    selectionCleared = Signal()
    """The user cleared the selection."""
    selectionChanged = Signal(int)
    """Another node is selected, by the program or the user."""

    def __init__(self, state: CanvasState, navigation: CanvasNavigation) -> None:
        super().__init__(state)
        self._state, self._navigation, self._scene = state, navigation, state.scene
        state.rearranged.connect(self._on_rearranged)

    @property
    def selected(self) -> int | None:
        """Return the selected node."""
        return self._state.style.selected

    @Slot(int)
    def select(self, node: int | None) -> bool:
        """Mark a node and the path to it, without the user signals. Returns False if it was already selected."""
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
        """Select a node as the user; None clears the selection."""
        if node is not None:
            self._navigation.ensure_visible(node)
        if not self.select(node):
            return
        if node is None:
            self.selectionCleared.emit()
        else:
            self.nodeSelected.emit(node)

    def set_search_matches(self, nodes: Iterable[int]) -> None:
        """Mark the matches of a search."""
        self._state.style.search_matches = frozenset(nodes)
        self._state.restyled.emit(False)

    def set_hovered(self, node: int | None) -> None:
        """Highlight the node under the pointer."""
        if node != self._state.style.hovered:
            self._state.style.hovered = node
            self._state.restyled.emit(False)

    def toggle_fold(self, node: int) -> None:
        """Fold or unfold the subtree of a node, and keep the node in place on the widget."""
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
        """Select the nearest shown ancestor if the selected node was hidden."""
        if self.selected is not None and not self._scene.is_shown(self.selected):
            self.pick(nearest_shown_ancestor(self._scene, self.selected))
