"""The tree for screen readers: a tree of items named by token, figures, state and place, made as they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import QAccessible, QAccessibleEvent, QAccessibleInterface, QAccessibleObject

if TYPE_CHECKING:
    from app.widgets.tree_canvas.canvas import TreeCanvas

_WORDS = {
    "root": "start", "kept": "kept", "pruned": "pruned", "best": "best", "finished": "finished",
    "refused": "refused", "unreached": "never reached", "accepted": "accepted", "bonus": "bonus token",
    "correction": "correction",
}  # fmt: skip


def spoken(canvas: TreeCanvas, node: int) -> str:
    """`named, probability .93, score −0.49, kept, on the best path, level 2, 1 of 3`."""
    scene, spec = canvas.scene, canvas.scene.model.nodes[node]
    parts = [spec.label.replace("␣", " ").strip() or spec.label]
    parts += [f"probability {spec.value}"] if spec.value else []
    parts += [spec.note] if spec.note else []
    parts.append(_WORDS[spec.state])
    parts += ["on the best path"] if node in canvas.best_path and spec.parent is not None else []
    parts += [f"constraint {spec.progress[0]} of {spec.progress[1]}"] if spec.progress else []
    parts += [spec.badge] if spec.badge else []
    siblings = shown_children(canvas, spec.parent) if spec.parent is not None else [node]
    if node in siblings:
        parts.append(f"level {scene.model.depth[node]}, {siblings.index(node) + 1} of {len(siblings)}")
    if node in scene.model.folded:
        parts.append(f"{scene.model.count_below(node, scene.deepest)} folded away")
    return ", ".join(parts)


def shown_children(canvas: TreeCanvas, node: int | None) -> list[int]:
    """Children that are drawn; the roots for None."""
    scene = canvas.scene
    below = scene.model.children.get(node, []) if node is not None else scene.layout.nodes_in(0)
    return [n for n in below if scene.shown(n)]


class NodeItem(QAccessibleInterface):
    """One node."""

    def __init__(self, tree: TreeItems, node: int) -> None:
        super().__init__()
        self._tree, self._node = tree, node

    def isValid(self) -> bool:
        """Whether the node is still in the tree."""
        return self._tree.canvas is not None and self._node in self._tree.canvas.scene.model

    def object(self) -> QObject | None:
        """No QObject stands for a node."""
        return None

    def parent(self) -> QAccessibleInterface:
        """The parent's item; the tree itself for the root."""
        above = self._tree.canvas.scene.model.nodes[self._node].parent if self.isValid() else None
        return self._tree if above is None else self._tree.item(above)

    def child(self, index: int) -> QAccessibleInterface | None:
        """Item of a shown child."""
        below = self._below()
        return self._tree.item(below[index]) if 0 <= index < len(below) else None

    def childCount(self) -> int:
        """How many children are shown."""
        return len(self._below())

    def _below(self) -> list[int]:
        return shown_children(self._tree.canvas, self._node) if self.isValid() else []

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:
        """Children do not stand inside a node's own box."""
        return None

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        """Its place among the shown children; -1 for strangers."""
        node = getattr(child, "_node", None)
        below = self._below()
        return below.index(node) if node in below else -1

    def text(self, kind: QAccessible.Text) -> str:
        """The name says everything."""
        return spoken(self._tree.canvas, self._node) if kind == QAccessible.Text.Name and self.isValid() else ""

    def setText(self, kind: QAccessible.Text, text: str) -> None:
        """Nothing can be written here."""

    def rect(self) -> QRect:
        """Where it is on the screen."""
        return self._tree.place(self._node) if self.isValid() else QRect()

    def role(self) -> QAccessible.Role:
        """An item of a tree."""
        return QAccessible.Role.TreeItem

    def state(self) -> QAccessible.State:
        """Selected, folded, or neither."""
        state: Any = QAccessible.State()
        if not self.isValid():
            state.invalid = True
            return state
        canvas = self._tree.canvas
        state.selectable = state.focusable = True
        state.selected = canvas.selected == self._node
        state.focused = state.selected and canvas.hasFocus()
        if canvas.scene.model.children.get(self._node):
            state.expandable = True
            state.collapsed = self._node in canvas.scene.model.folded
            state.expanded = not state.collapsed
        return state


class TreeItems(QAccessibleObject):
    """The canvas itself, as a tree."""

    def __init__(self, canvas: TreeCanvas) -> None:
        super().__init__(canvas)
        self.canvas = canvas
        self._items: dict[int, NodeItem] = {}

    def item(self, node: int) -> NodeItem:
        """The one item that stands for `node`."""
        if node not in self._items:
            self._items[node] = NodeItem(self, node)
        return self._items[node]

    def release(self) -> None:
        """Take every item back from Qt before Python frees it; `uniqueId` finds the number it has, if it has one."""
        for item in self._items.values():
            QAccessible.deleteAccessibleInterface(QAccessible.uniqueId(item))
        self._items.clear()

    def place(self, node: int) -> QRect:
        """A node's rectangle on the screen; empty when it is not drawn."""
        box = self.canvas.node_rect(node)
        return QRect(self.canvas.mapToGlobal(box.topLeft()), box.size()) if not box.isEmpty() else QRect()

    def parent(self) -> QAccessibleInterface | None:
        """The widget around the canvas."""
        above = self.canvas.parent()
        return QAccessible.queryAccessibleInterface(above) if above is not None else None

    def child(self, index: int) -> QAccessibleInterface | None:
        """Item of a root."""
        roots = shown_children(self.canvas, None)
        return self.item(roots[index]) if 0 <= index < len(roots) else None

    def childCount(self) -> int:
        """How many roots there are: one, or none in an empty tree."""
        return len(shown_children(self.canvas, None))

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        """A root's place."""
        roots = shown_children(self.canvas, None)
        node = getattr(child, "_node", None)
        return roots.index(node) if node in roots else -1

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:
        """The node at that point of the screen."""
        node = self.canvas.node_at(self.canvas.mapFromGlobal(QPoint(x, y)))
        return self.item(node) if node is not None else None

    def focusChild(self) -> QAccessibleInterface | None:
        """The selected node."""
        node = self.canvas.selected
        return self.item(node) if node is not None else None

    def text(self, kind: QAccessible.Text) -> str:
        """The canvas's name, and how large the tree is."""
        if kind == QAccessible.Text.Name:
            return self.canvas.accessibleName()
        return f"{len(self.canvas.scene.model):,} nodes" if kind == QAccessible.Text.Description else ""

    def rect(self) -> QRect:
        """The canvas on the screen."""
        return QRect(self.canvas.mapToGlobal(QPoint(0, 0)), self.canvas.size())

    def role(self) -> QAccessible.Role:
        """A tree."""
        return QAccessible.Role.Tree

    def state(self) -> QAccessible.State:
        """Focus and visibility."""
        state: Any = QAccessible.State()
        state.focusable = True
        state.focused = self.canvas.hasFocus() and self.canvas.selected is None
        state.invisible = not self.canvas.isVisible()
        return state


def _make(class_name: str, owner: QObject | None) -> QAccessibleInterface | None:
    from app.widgets.tree_canvas.canvas import TreeCanvas

    return owner.accessible_items() if isinstance(owner, TreeCanvas) else None


_installed = False


def install() -> None:
    """Tell Qt, once, how canvases answer screen readers."""
    global _installed
    if not _installed:
        QAccessible.installFactory(_make)
        _installed = True


def say_focus(canvas: TreeCanvas, node: int) -> None:
    """Tell a screen reader that the focus went to `node`."""
    if QAccessible.isActive():
        QAccessible.queryAccessibleInterface(canvas)
        item = canvas.accessible_items().item(node)
        QAccessible.updateAccessibility(QAccessibleEvent(item, QAccessible.Event.Focus))
