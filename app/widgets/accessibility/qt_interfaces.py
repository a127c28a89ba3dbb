"""The further faces that Qt asks an interface for by pointer: value, text, action."""

# Qt's stubs leave the types of what is overridden here open.
# mypy: disable-error-code="override"

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QAccessibleActionInterface, QAccessibleTextInterface, QAccessibleValueInterface
from shiboken6 import Shiboken, VoidPtr

from app.widgets.accessibility.accessible_part import AccessibleText, AccessibleValue

NULL_POINTER = VoidPtr(0)
"""No such face. Never None: Qt's bindings crash on it where a pointer is asked for."""


def interface_pointer(interface: Shiboken.Object) -> VoidPtr:
    """The address at which Qt finds `interface`, which somebody must keep alive."""
    return VoidPtr(Shiboken.getCppPointer(interface)[0])


class ValueInterface(QAccessibleValueInterface):
    """A value that can be read, and set where it may be."""

    def __init__(self, read: Callable[[], AccessibleValue | None]) -> None:
        super().__init__()
        self._read = read

    def _value(self) -> AccessibleValue:
        return self._read() or AccessibleValue(0, 0, 0)

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
    """The one action of a part."""

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
    """A text that is read only; Qt counts it in UTF-16, we in code points."""

    def __init__(self, read: Callable[[], AccessibleText | None], to_screen: Callable[[QRect], QRect]) -> None:
        super().__init__()
        self._read, self._to_screen = read, to_screen

    def _accessible_text(self) -> AccessibleText:
        return self._read() or AccessibleText("", 0, lambda _offset: QRect(), lambda _offset: None)

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
        """Text is selected by the view's own keys."""

    def removeSelection(self, number: int) -> None:
        """See `addSelection`."""

    def setSelection(self, number: int, start: int, end: int) -> None:
        """See `addSelection`."""

    def scrollToSubstring(self, start: int, end: int) -> None:
        """What is gone to is brought into sight."""
        self.setCursorPosition(start)


def _utf16_bytes(text: str) -> bytes:
    return text.encode("utf-16-le", "replace")


def _utf16_length(text: str) -> int:
    return len(_utf16_bytes(text)) // 2


def _code_point_offset(text: str, position: int) -> int:
    return len(_utf16_bytes(text)[: 2 * position].decode("utf-16-le", "ignore"))
