"""What Qt gets of a widget that has a voice of its own."""

# Qt takes None for "nobody there", and a state has attributes; its stubs know neither.
# mypy: disable-error-code="override, no-any-return"

from __future__ import annotations

from typing import Any, cast

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget
from shiboken6 import VoidPtr

from app.widgets.accessibility.accessible_part import AccessiblePart, Role
from app.widgets.accessibility.accessible_widget import AccessibleWidget
from app.widgets.accessibility.part_items import PartInterface, release_interfaces
from app.widgets.accessibility.qt_interfaces import NULL_POINTER, TextInterface, ValueInterface, interface_pointer

Kind = QAccessible.InterfaceType


class AccessibleWidgetInterface(QAccessibleWidget):
    """A `AccessibleWidget` widget; its children are its parts."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget, Role.Graphic)
        self._items: dict[int, PartInterface] = {}
        self._value = ValueInterface(lambda: self.accessible_widget.accessible_value())
        self._text = TextInterface(lambda: self.accessible_widget.accessible_text(), self.to_screen)
        widget.destroyed.connect(self._release)

    @property
    def accessible_widget(self) -> AccessibleWidget:
        """The widget, as what it says."""
        return cast(AccessibleWidget, self.widget())

    @property
    def interface(self) -> QAccessibleInterface:
        """Itself, as Qt knows it."""
        return self

    @property
    def has_focus(self) -> bool:
        """Whether the keyboard is in the widget."""
        return self.widget().hasFocus()

    def part(self, number: int) -> AccessiblePart | None:
        """The part of that number; None where there is none any more."""
        parts = self.accessible_widget.accessible_parts()
        return parts[number] if 0 <= number < len(parts) else None

    def to_screen(self, rect: QRect) -> QRect:
        """A rectangle of the widget, on the screen."""
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
