"""Accessibility of the tree: items named by token, figures, state and position, created on access."""

# Qt accepts None for a missing child or parent, and a state has attributes; the stubs declare neither.
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QPoint, QRect, Slot
from PySide6.QtGui import QAccessible, QAccessibleEvent, QAccessibleInterface, QAccessibleObject
from PySide6.QtWidgets import QWidget

from decodescope.app.widgets.accessibility import AccessibleWidget
from decodescope.app.widgets.accessibility.qt_interfaces import release_interfaces
from decodescope.app.widgets.tree_canvas.canvas_state import CanvasState
from decodescope.app.widgets.tree_canvas.tree_scene import TreeScene
from decodescope.resources.language import join_names, mark, tr, trn

_STATE_LABELS = {
    "root": mark("start"),
    "kept": mark("kept"),
    "pruned": mark("pruned"),
    "best": mark("best"),
    "finished": mark("finished"),
    "refused": mark("rejected"),
    "unreached": mark("not reached"),
    "accepted": mark("accepted"),
    "bonus": mark("bonus token"),
    "correction": mark("correction"),
    "lone": mark("single"),
    "cut": mark("cut off at the limit"),
    "stopped": mark("stopped"),
}


def describe_node(state: CanvasState, node: int) -> str:
    """Describe a node: `named, probability .93, score −0.49, kept, on the best path, level 2, 1 of 3`."""
    scene, spec = state.scene, state.scene.model.nodes[node]
    parts = [spec.label.replace("␣", " ").strip() or spec.label]
    parts += [tr("probability {value}").format(value=spec.value)] if spec.value else []
    parts += [spec.note] if spec.note else []
    parts.append(tr(_STATE_LABELS[spec.state]))
    parts += [tr("on the best path")] if node in state.style.best_path and spec.parent is not None else []
    if spec.progress:
        met, total = spec.progress
        parts.append(tr("constraint {met} of {total}").format(met=met, total=total))
    parts += [spec.badge] if spec.badge else []
    siblings = shown_children(scene, spec.parent) if spec.parent is not None else [node]
    if node in siblings:
        parts.append(
            tr("level {depth}, {place} of {count}").format(
                depth=scene.model.depth[node], place=siblings.index(node) + 1, count=len(siblings)
            )
        )
    if node in scene.model.folded:
        parts.append(tr("{count} folded").format(count=scene.model.count_below(node, scene.max_depth)))
    return join_names(parts)


def shown_children(scene: TreeScene, node: int | None) -> list[int]:
    """Return the drawn children of a node; the roots for None."""
    below = scene.model.children.get(node, []) if node is not None else scene.layout.nodes_in(0)
    return [n for n in below if scene.is_shown(n)]


class NodeInterface(QAccessibleInterface):
    """Accessibility interface of one node."""

    def __init__(self, tree: TreeInterface, node: int) -> None:
        super().__init__()
        self._tree, self.node = tree, node

    def isValid(self) -> bool:
        """Return whether the node is still in the tree."""
        return self.node in self._tree.canvas_state.scene.model

    def object(self) -> QObject | None:
        """Return None: a node is not a QObject."""
        return None

    def parent(self) -> QAccessibleInterface:
        """Return the parent's interface; the tree for a root."""
        above = self._tree.canvas_state.scene.model.nodes[self.node].parent if self.isValid() else None
        return self._tree if above is None else self._tree.item(above)

    def child(self, index: int) -> QAccessibleInterface | None:
        """Return the interface of a shown child."""
        below = self._below()
        return self._tree.item(below[index]) if 0 <= index < len(below) else None

    def childCount(self) -> int:
        """Return the number of shown children."""
        return len(self._below())

    def _below(self) -> list[int]:
        return shown_children(self._tree.canvas_state.scene, self.node) if self.isValid() else []

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:
        """Return None: children lie outside the node's box."""
        return None

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        """Return the index among the shown children, or -1."""
        return _index_of(child, self._below())

    def text(self, kind: QAccessible.Text) -> str:
        """Return the full description as the name."""
        return (
            describe_node(self._tree.canvas_state, self.node)
            if kind == QAccessible.Text.Name and self.isValid()
            else ""
        )

    def setText(self, kind: QAccessible.Text, text: str) -> None:
        """Do nothing: nodes are read-only."""

    def rect(self) -> QRect:
        """Return the rectangle on the screen."""
        return self._tree.node_screen_rect(self.node) if self.isValid() else QRect()

    def role(self) -> QAccessible.Role:
        """Return the role of a tree item."""
        return QAccessible.Role.TreeItem

    def state(self) -> QAccessible.State:
        """Return whether the node is selected, focused and folded."""
        state: Any = QAccessible.State()
        if not self.isValid():
            state.invalid = True
            return state
        stage, model = self._tree.canvas_state, self._tree.canvas_state.scene.model
        state.selectable = state.focusable = True
        state.selected = stage.style.selected == self.node
        state.focused = state.selected and self._tree.has_focus
        if model.children.get(self.node):
            state.expandable = True
            state.collapsed = self.node in model.folded
            state.expanded = not state.collapsed
        return state


class TreeInterface(QAccessibleObject):
    """Accessibility interface of the tree widget."""

    def __init__(self, stage: CanvasState, widget: QWidget) -> None:
        super().__init__(widget)
        self.canvas_state, self._widget = stage, widget
        self._items: dict[int, NodeInterface] = {}

    @property
    def has_focus(self) -> bool:
        """Whether the tree has the keyboard focus."""
        return self._widget.hasFocus()

    def item(self, node: int) -> NodeInterface:
        """Return the interface of `node`, created once."""
        if node not in self._items:
            self._items[node] = NodeInterface(self, node)
        return self._items[node]

    def release(self) -> None:
        """Delete the interfaces of all nodes."""
        release_interfaces(self._items)

    def node_screen_rect(self, node: int) -> QRect:
        """Return a node's rectangle on the screen; empty if it is not drawn."""
        box = self.canvas_state.positions.node_rect(node)
        return QRect(self._widget.mapToGlobal(box.topLeft()), box.size()) if not box.isEmpty() else QRect()

    def parent(self) -> QAccessibleInterface | None:
        """Return the interface of the parent widget."""
        above = self._widget.parent()
        return QAccessible.queryAccessibleInterface(above) if above is not None else None

    def child(self, index: int) -> QAccessibleInterface | None:
        """Return the interface of a root."""
        roots = self._roots()
        return self.item(roots[index]) if 0 <= index < len(roots) else None

    def childCount(self) -> int:
        """Return the number of roots: one, or none in an empty tree."""
        return len(self._roots())

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        """Return the index of a root."""
        return _index_of(child, self._roots())

    def _roots(self) -> list[int]:
        return shown_children(self.canvas_state.scene, None)

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:
        """Return the node at a screen position."""
        node = self.canvas_state.positions.node_at(self._widget.mapFromGlobal(QPoint(x, y)))
        return self.item(node) if node is not None else None

    def focusChild(self) -> QAccessibleInterface | None:
        """Return the selected node."""
        node = self.canvas_state.style.selected
        return self.item(node) if node is not None else None

    def text(self, kind: QAccessible.Text) -> str:
        """Return the widget's name, and the number of nodes as description."""
        if kind == QAccessible.Text.Name:
            return self._widget.accessibleName()
        count = len(self.canvas_state.scene.model)
        return trn("{n:,} node", "{n:,} nodes", count).format(n=count) if kind == QAccessible.Text.Description else ""

    def rect(self) -> QRect:
        """Return the widget's rectangle on the screen."""
        return QRect(self._widget.mapToGlobal(QPoint(0, 0)), self._widget.size())

    def role(self) -> QAccessible.Role:
        """Return the role of a tree."""
        return QAccessible.Role.Tree

    def state(self) -> QAccessible.State:
        """Return focus and visibility."""
        state: Any = QAccessible.State()
        state.focusable = True
        state.focused = self.has_focus and self.canvas_state.style.selected is None
        state.invisible = not self._widget.isVisible()
        return state


def _index_of(child: QAccessibleInterface, nodes: list[int]) -> int:
    """Return the index of an interface among `nodes`, or -1."""
    return nodes.index(child.node) if isinstance(child, NodeInterface) and child.node in nodes else -1


class AccessibleTree(QWidget, AccessibleWidget):
    """A widget with a tree canvas that screen readers see as a tree."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.canvas_state = CanvasState(self)
        self._items: TreeInterface | None = None
        self.canvas_state.cleared.connect(self._release)

    def tree_interface(self) -> TreeInterface:
        """Return the tree's accessibility interface, created on first use."""
        if self._items is None:
            items = self._items = TreeInterface(self.canvas_state, self)
            self.destroyed.connect(items.release)
        return self._items

    def accessible_interface(self) -> QAccessibleInterface:
        """Return the tree interface instead of a list of parts."""
        return self.tree_interface()

    @Slot(int)
    def announce_focus(self, node: int) -> None:
        """Announce to a screen reader that the focus moved to `node`."""
        if QAccessible.isActive():
            QAccessible.queryAccessibleInterface(self)
            item = self.tree_interface().item(node)
            QAccessible.updateAccessibility(QAccessibleEvent(item, QAccessible.Event.Focus))

    @Slot()
    def _release(self) -> None:
        if self._items is not None:
            self._items.release()
