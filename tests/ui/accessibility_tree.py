"""The accessibility tree of a window as a screen reader sees it, and its faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QWidget

Role = QAccessible.Role

CONTROLS = {
    Role.Button, Role.ButtonMenu, Role.CheckBox, Role.RadioButton, Role.ComboBox, Role.SpinBox, Role.Slider,
    Role.EditableText, Role.ProgressBar, Role.PageTab, Role.PageTabList, Role.List, Role.ListItem, Role.Tree,
    Role.TreeItem, Role.Table, Role.ColumnHeader, Role.MenuItem, Role.Link, Role.Chart, Role.Graphic, Role.Dialog,
    Role.Grip,
}  # fmt: skip
"""What must have a name. Cells and labels are named by their texts, and may be empty; scroll bars belong to the
named area that they scroll."""
MEASURED = {Role.SpinBox, Role.Slider, Role.ProgressBar, Role.ComboBox}
"""What must have a value as well."""


@dataclass(frozen=True)
class AccessibleNode:
    """One node of the accessibility tree, as plain strings."""

    role: Role
    name: str
    description: str
    value: str
    path: str
    widget: QWidget | None
    focusable: bool
    children: tuple[AccessibleNode, ...]

    def all(self) -> Iterator[AccessibleNode]:
        """Return this node and all its descendants."""
        yield self
        for child in self.children:
            yield from child.all()

    def one(self, role: Role, name: str) -> AccessibleNode:
        """Return the only node of this role whose name starts with `name`."""
        found = [node for node in self.all() if node.role == role and node.name.startswith(name)]
        assert len(found) == 1, f"{len(found)} nodes are {role.name} “{name}…”"
        return found[0]


def read_tree(widget: QWidget) -> AccessibleNode:
    """Return the visible tree below `widget`."""
    return _read_node(QAccessible.queryAccessibleInterface(widget), "")


def _read_node(spoken: QAccessibleInterface, above: str) -> AccessibleNode:
    words, thing = QAccessible.Text, spoken.object()
    widget = thing if isinstance(thing, QWidget) else None
    name = _name(spoken)
    own = (widget.objectName() if widget is not None else "") or name or spoken.role().name
    path = f"{above}/{own}"
    below = (spoken.child(number) for number in range(spoken.childCount()))
    children = tuple(_read_node(child, path) for child in below if child is not None and _is_visible(child))
    return AccessibleNode(spoken.role(), name, spoken.text(words.Description), spoken.text(words.Value), path, widget,
                 bool(spoken.state().focusable), children)  # fmt: skip


def _name(spoken: QAccessibleInterface) -> str:
    """Return the node's name, or that of its label: on Linux a combo box's own name is its choice."""
    relation = QAccessible.RelationFlag.Label
    labels = [other.text(QAccessible.Text.Name) for other, kind in spoken.relations(relation) if kind == relation]
    return (labels[0] if labels and spoken.role() == Role.ComboBox else spoken.text(QAccessible.Text.Name)).strip()


def _is_visible(spoken: QAccessibleInterface) -> bool:
    state = spoken.state()
    return spoken.isValid() and not state.invisible


def faults(tree: AccessibleNode) -> list[str]:
    """Return a sentence for every node that a screen reader user could not understand."""
    return [
        reported
        for node in tree.all()
        for reported in (*_has_no_name(node), *_has_no_value(node), *_has_duplicate_name(node))
    ]


def _has_no_name(node: AccessibleNode) -> Iterator[str]:
    if (node.role in CONTROLS or node.focusable) and node.role not in (Role.Cell, Role.StaticText) and not node.name:
        yield f"{node.role.name} at {node.path} has no name"


def _has_no_value(node: AccessibleNode) -> Iterator[str]:
    if node.role in MEASURED and not node.value:
        yield f"{node.role.name} “{node.name}” at {node.path} has no value"
    if node.role in (Role.Graphic, Role.Chart) and not (node.description or len(node.name) > 20 or node.children):
        yield f"{node.role.name} “{node.name}” at {node.path} says nothing of what it shows"


def _has_duplicate_name(node: AccessibleNode) -> Iterator[str]:
    names = Counter((child.role, child.name) for child in node.children if child.role in CONTROLS)
    for (role, name), count in names.items():
        if count > 1:
            yield f"{count} of {role.name} “{name}” stand side by side in {node.path}"
