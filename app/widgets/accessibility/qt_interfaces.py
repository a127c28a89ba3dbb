"""Qt accessibility interfaces of painted widgets, of their parts, and of combo boxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleActionInterface,
    QAccessibleInterface,
    QAccessibleTextInterface,
    QAccessibleValueInterface,
)
from PySide6.QtWidgets import QAccessibleWidget, QWidget
from shiboken6 import Shiboken, VoidPtr

from decodescope.app.widgets.accessibility.accessible_widget import (
    AccessiblePart,
    AccessibleText,
    AccessibleValue,
    AccessibleWidget,
    Role,
)
from decodescope.app.widgets.inputs import LazyComboBox

# Qt's stubs leave the types of these overridden methods open.
# mypy: disable-error-code="override"


NULL_POINTER = VoidPtr(0)
"""No such interface. Never return None: Qt's bindings crash on it where a pointer is expected."""


def interface_pointer(interface: Shiboken.Object) -> VoidPtr:
    """Return the address of `interface` for Qt. The caller must keep the object alive."""
    return VoidPtr(Shiboken.getCppPointer(interface)[0])


class ValueInterface(QAccessibleValueInterface):
    """A value that can be read, and set if it is writable."""

    def __init__(self, get_value: Callable[[], AccessibleValue | None]) -> None:
        super().__init__()
        self._get_value = get_value

    def _value(self) -> AccessibleValue:
        return self._get_value() or AccessibleValue(0, 0, 0)

    def currentValue(self) -> float:
        return self._value().value

    def minimumValue(self) -> float:
        return self._value().minimum

    def maximumValue(self) -> float:
        return self._value().maximum

    def minimumStepSize(self) -> float:
        return self._value().step

    def setCurrentValue(self, value: float) -> None:
        put = self._value().set_value
        if put is not None:
            put(float(value))


class PressInterface(QAccessibleActionInterface):
    """The press action of a part."""

    def __init__(self, press: Callable[[], None]) -> None:
        super().__init__()
        self._press = press

    def actionNames(self) -> list[str]:
        return [QAccessibleActionInterface.pressAction()]

    def doAction(self, name: str) -> None:
        if name == QAccessibleActionInterface.pressAction():
            self._press()

    def keyBindingsForAction(self, name: str) -> list[str]:
        return []


class TextInterface(QAccessibleTextInterface):
    """A read-only text. Qt counts in UTF-16 units, this program in code points."""

    def __init__(self, get_text: Callable[[], AccessibleText | None], to_screen: Callable[[QRect], QRect]) -> None:
        super().__init__()
        self._get_text, self._to_screen = get_text, to_screen

    def _accessible_text(self) -> AccessibleText:
        return self._get_text() or AccessibleText("", 0, lambda _offset: QRect(), lambda _offset: None)

    def text(self, start: int, end: int) -> str:
        return _utf16_bytes(self._accessible_text().text)[2 * start : 2 * end].decode("utf-16-le", "replace")

    def characterCount(self) -> int:
        return _utf16_length(self._accessible_text().text)

    def cursorPosition(self) -> int:
        passage = self._accessible_text()
        return _utf16_length(passage.text[: passage.cursor])

    def setCursorPosition(self, position: int) -> None:
        passage = self._accessible_text()
        passage.move_cursor(_code_point_offset(passage.text, position))

    def characterRect(self, position: int) -> QRect:
        passage = self._accessible_text()
        return self._to_screen(passage.character_rect(_code_point_offset(passage.text, position)))

    def offsetAtPoint(self, point: QPoint) -> int:
        passage = self._accessible_text()
        boxes = (self._to_screen(passage.character_rect(offset)) for offset in range(len(passage.text)))
        return next((n for n, box in enumerate(boxes) if box.contains(point)), -1)

    def selectionCount(self) -> int:
        return 0

    def addSelection(self, start: int, end: int) -> None:
        """Do nothing: text is selected with the view's own keys."""

    def removeSelection(self, number: int) -> None:
        """Do nothing, like `addSelection`."""

    def setSelection(self, number: int, start: int, end: int) -> None:
        """Do nothing, like `addSelection`."""

    def scrollToSubstring(self, start: int, end: int) -> None:
        """Move the cursor to `start`, which makes that text visible."""
        self.setCursorPosition(start)


def _utf16_bytes(text: str) -> bytes:
    return text.encode("utf-16-le", "replace")


def _utf16_length(text: str) -> int:
    return len(_utf16_bytes(text)) // 2


def _code_point_offset(text: str, position: int) -> int:
    return len(_utf16_bytes(text)[: 2 * position].decode("utf-16-le", "ignore"))


# Qt accepts None for a missing child or parent, and a state has attributes; the stubs declare neither.
# mypy: disable-error-code="override, no-any-return"


def release_interfaces(items: dict[int, Any]) -> None:
    """Delete the interfaces from Qt's cache before Python frees them. `uniqueId` returns an interface's id, if it has
    one.
    """
    for item in items.values():
        QAccessible.deleteAccessibleInterface(QAccessible.uniqueId(item))
    items.clear()


class PartOwner(Protocol):
    """The interface of the widget that contains the parts."""

    def part(self, number: int) -> AccessiblePart | None:
        """Return the part `number`, or None if it no longer exists."""

    def to_screen(self, rect: QRect) -> QRect:
        """Convert a rectangle from widget to screen coordinates."""

    @property
    def has_focus(self) -> bool:
        """Whether the widget has the keyboard focus."""

    @property
    def interface(self) -> QAccessibleInterface:
        """The owner as a Qt interface."""


class PartInterface(QAccessibleInterface):
    """Interface of the part at a fixed number, whatever that part currently is."""

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
        """Do nothing: parts are read-only."""

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
        """Return whether the part contains a screen position."""
        return self.rect().contains(point)


# Qt accepts None for a missing child or parent, and a state has attributes; the stubs declare neither.
# mypy: disable-error-code="override, no-any-return"


Kind = QAccessible.InterfaceType


class AccessibleWidgetInterface(QAccessibleWidget):
    """Interface of an `AccessibleWidget`; its children are the widget's parts."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget, Role.Graphic)
        self._items: dict[int, PartInterface] = {}
        self._value = ValueInterface(lambda: self.accessible_widget.accessible_value())
        self._text = TextInterface(lambda: self.accessible_widget.accessible_text(), self.to_screen)
        widget.destroyed.connect(self._release)

    @property
    def accessible_widget(self) -> AccessibleWidget:
        """The widget, typed as its accessibility mixin."""
        return cast(AccessibleWidget, self.widget())

    @property
    def interface(self) -> QAccessibleInterface:
        """The owner as a Qt interface."""
        return self

    @property
    def has_focus(self) -> bool:
        """Whether the widget has the keyboard focus."""
        return self.widget().hasFocus()

    def part(self, number: int) -> AccessiblePart | None:
        """Return the part `number`, or None if it no longer exists."""
        parts = self.accessible_widget.accessible_parts()
        return parts[number] if 0 <= number < len(parts) else None

    def to_screen(self, rect: QRect) -> QRect:
        """Convert a rectangle from widget to screen coordinates."""
        return QRect(self.widget().mapToGlobal(rect.topLeft()), rect.size())

    def role(self) -> Role:
        return self.accessible_widget.accessible_role

    def text(self, kind: QAccessible.Text) -> str:
        value = self.accessible_widget.accessible_value() if kind == QAccessible.Text.Value else None
        return (value.text or f"{value.value:g}") if value is not None else super().text(kind)

    def childCount(self) -> int:
        return len(self.accessible_widget.accessible_parts()) + len(self.accessible_widget.child_controls())

    def child(self, index: int) -> QAccessibleInterface | None:
        if self.part(index) is None:
            return self._control(index - len(self.accessible_widget.accessible_parts()))
        if index not in self._items:
            self._items[index] = PartInterface(self, index)
        return self._items[index]

    def _control(self, index: int) -> QAccessibleInterface | None:
        controls = self.accessible_widget.child_controls()
        return QAccessible.queryAccessibleInterface(controls[index]) if 0 <= index < len(controls) else None

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        if isinstance(child, PartInterface):
            return child.number
        places = [n for n, widget in enumerate(self.accessible_widget.child_controls()) if widget is child.object()]
        return len(self.accessible_widget.accessible_parts()) + places[0] if places else -1

    def childAt(self, x: int, y: int) -> QAccessibleInterface | None:
        point = self.widget().mapFromGlobal(QPoint(x, y))
        parts = self.accessible_widget.accessible_parts()
        return next((self.child(n) for n, part in enumerate(parts) if part.rect().contains(point)), None)

    def focusChild(self) -> QAccessibleInterface | None:
        number = self.accessible_widget.focused_part() if self.has_focus else None
        return self.child(number) if number is not None else None

    def state(self) -> QAccessible.State:
        state: Any = super().state()
        state.readOnly = state.selectableText = self.accessible_widget.accessible_text() is not None
        return state

    def interface_cast(self, kind: Kind) -> VoidPtr:
        if kind == Kind.ValueInterface and self.accessible_widget.accessible_value() is not None:
            return interface_pointer(self._value)
        if kind == Kind.TextInterface and self.accessible_widget.accessible_text() is not None:
            return interface_pointer(self._text)
        inherited = super().interface_cast(kind)
        return inherited if isinstance(inherited, VoidPtr) else NULL_POINTER

    def _release(self) -> None:
        release_interfaces(self._items)


# Qt accepts None for a missing child or parent; its stubs do not.
# mypy: disable-error-code="override, no-any-return"


class ComboInterface(QAccessibleWidget):
    """Reports the combo box with its name, its choice as value and its list as child. Pressing opens the list."""

    def __init__(self, combo: LazyComboBox) -> None:
        super().__init__(combo, Role.ComboBox)

    @property
    def _combo(self) -> LazyComboBox:
        return cast(LazyComboBox, self.widget())

    def text(self, kind: QAccessible.Text) -> str:
        return self._combo.currentText() if kind == QAccessible.Text.Value else super().text(kind)

    def childCount(self) -> int:
        return 1

    def child(self, index: int) -> QAccessibleInterface | None:
        return QAccessible.queryAccessibleInterface(self._combo.view()) if index == 0 else None

    def indexOfChild(self, child: QAccessibleInterface) -> int:
        return 0 if child.object() is self._combo.view() else -1

    def state(self) -> QAccessible.State:
        state: Any = super().state()
        state.expandable = state.hasPopup = True
        state.expanded = self._combo.is_open
        state.collapsed = not state.expanded
        return state

    def actionNames(self) -> list[str]:
        names = QAccessibleActionInterface
        return [names.showMenuAction(), names.pressAction()]

    def doAction(self, name: str) -> None:
        if name in self.actionNames():
            self._combo.hidePopup() if self._combo.is_open else self._combo.showPopup()
