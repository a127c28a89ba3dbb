"""A part of a painted widget, as screen readers meet it."""

# Qt takes None for "nobody there", and a state has attributes; its stubs know neither.
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from typing import Any, Protocol

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import QAccessible, QAccessibleInterface
from shiboken6 import VoidPtr

from app.widgets.accessibility.accessible_part import AccessiblePart, Role
from app.widgets.accessibility.qt_interfaces import NULL_POINTER, PressInterface, interface_pointer


def release_interfaces(items: dict[int, Any]) -> None:
    """Take every item back from Qt before Python frees it; `uniqueId` finds the number it has, if it has one."""
    for item in items.values():
        QAccessible.deleteAccessibleInterface(QAccessible.uniqueId(item))
    items.clear()


class PartOwner(Protocol):
    """The interface of the widget that draws the parts."""

    def part(self, number: int) -> AccessiblePart | None:
        """The part of that number; None where there is none any more."""

    def to_screen(self, rect: QRect) -> QRect:
        """A rectangle of the widget, on the screen."""

    @property
    def has_focus(self) -> bool:
        """Whether the keyboard is in the widget."""

    @property
    def interface(self) -> QAccessibleInterface:
        """Itself, as Qt knows it."""


class PartInterface(QAccessibleInterface):
    """The part of one number, whatever it is now."""

    def __init__(self, owner: PartOwner, number: int) -> None:
        super().__init__()
        self._owner, self.number = owner, number
        self._press = PressInterface(self._run_press)

    @property
    def _part(self) -> AccessiblePart | None:
        return self._owner.part(self.number)

    def _run_press(self) -> None:
        part = self._part
        if part is not None and part.press is not None:
            part.press()

    def isValid(self) -> bool:
        return self._part is not None

    def object(self) -> QObject | None:
        return None

    def parent(self) -> QAccessibleInterface:
        return self._owner.interface

    def child(self, index: int) -> QAccessibleInterface | None:
        return None

    def childCount(self) -> int:
        return 0

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:
        return None

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return -1

    def text(self, kind: QAccessible.Text) -> str:
        part = self._part
        if part is None:
            return ""
        return {QAccessible.Text.Name: part.name, QAccessible.Text.Value: part.value}.get(kind, "")

    def setText(self, kind: QAccessible.Text, text: str) -> None:
        """Nothing can be written here."""

    def rect(self) -> QRect:
        part = self._part
        widget_rect = part.rect() if part is not None else QRect()
        return self._owner.to_screen(widget_rect) if not widget_rect.isEmpty() else QRect()

    def role(self) -> Role:
        part = self._part
        return part.role if part is not None else Role.ListItem

    def state(self) -> QAccessible.State:
        state: Any = QAccessible.State()
        part = self._part
        if part is None:
            state.invalid = True
            return state
        state.selectable = state.focusable = part.selected is not None
        state.selected = bool(part.selected)
        state.focused = state.selected and self._owner.has_focus
        return state

    def interface_cast(self, kind: QAccessible.InterfaceType) -> VoidPtr:
        part = self._part
        pressable = part is not None and part.press is not None
        return (
            interface_pointer(self._press)
            if pressable and kind == QAccessible.InterfaceType.ActionInterface
            else NULL_POINTER
        )

    def contains(self, point: QPoint) -> bool:
        """Whether that point of the screen lies in it."""
        return self.rect().contains(point)
