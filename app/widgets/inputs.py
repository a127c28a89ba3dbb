"""Controls that hold a value and keep it while somebody scrolls: the wheel moves the page around them.

Nothing in `app` uses Qt's own classes of these directly; `tests/app/test_inputs.py` checks that.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QScrollArea, QSlider, QSpinBox, QTabBar


class ComboBox(QComboBox):
    """Choices that the wheel does not change."""

    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # by default the wheel takes the focus along

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class SpinBox(QSpinBox):
    """A whole number that the wheel does not change."""

    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class DoubleSpinBox(QDoubleSpinBox):
    """A decimal number that the wheel does not change."""

    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class Slider(QSlider):
    """A position that the wheel does not change."""

    def __init__(self, *arguments: Any, **properties: Any) -> None:
        super().__init__(*arguments, **properties)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class TabBar(QTabBar):
    """Tabs that the wheel does not change."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class ScrollArea(QScrollArea):
    """A page that scrolls, and leaves the wheel to the window while Ctrl is held: there it changes the text size."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        if changes_text_size(event):
            event.ignore()
        else:
            super().wheelEvent(event)


def changes_text_size(event: QWheelEvent) -> bool:
    """Whether a turn of the wheel means the size of the text."""
    return bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
