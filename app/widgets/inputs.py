"""Controls that hold a value and keep it while somebody scrolls: the wheel moves the page around them.

Nothing in `app` uses Qt's own classes of these directly; `tests/app/test_inputs.py` checks that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QScrollArea, QSlider, QSpinBox, QTabBar, QWidget

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractItemView


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


class LazyComboBox(ComboBox):
    """A list is eleven widgets of which nothing is seen at first. Qt makes them with the first style that the box gets,
    or with its first choice; here they hear of no style, and get nothing of their own, before somebody wants them."""

    _has_list = False

    @property
    def is_open(self) -> bool:
        """Whether the list is on the screen."""
        return self._has_list and self.view().isVisible()

    def prepare_list(self) -> None:
        """What is to be set of the list before it is seen the first time."""

    def view(self) -> QAbstractItemView:
        """The list, made now if it was not there."""
        if not self._has_list:
            self._has_list = True
            self.prepare_list()
        return super().view()

    def showPopup(self) -> None:
        self.view()
        super().showPopup()

    def changeEvent(self, event: QEvent) -> None:
        """Of another style the list hears when it is there."""
        if self._has_list or event.type() != QEvent.Type.StyleChange:
            super().changeEvent(event)
        else:
            QWidget.changeEvent(self, event)
