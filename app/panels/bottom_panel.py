"""Panel at the foot of the window: a heading, a sentence and a button to leave."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal, SignalInstance
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget
from shiboken6 import isValid

from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import set_up
from decodescope.app.widgets.labels import TextBlock
from decodescope.app.widgets.plain_text import PlainLabel

_PRESS_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Up, Qt.Key.Key_Down)
"""Keys that press a button or open a list."""


class BottomPanel(Themed, QFrame):
    """Panel that takes its own space at the foot of the window and covers nothing.

    While it is open it has the keyboard focus: Esc closes it before it stops a run, and no key reaches the widgets
    below it.
    """

    nextRequested = Signal()
    leaveRequested = Signal()

    def __init__(self, gap: int, parent: QWidget | None = None) -> None:
        """`gap`: vertical spacing between the rows, in pixels at 100 %."""
        super().__init__(parent)
        self.setProperty("role", "foot")
        self._gap = gap
        self._focus_before: QWidget | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title, self.sentence = PlainLabel(), TextBlock(self, "spoken")
        self.title.setProperty("role", "heading")
        self.column = QVBoxLayout(self)

    def create_button(self, name: str, pressed: SignalInstance, role: str = "quiet") -> QPushButton:
        """Create one of the panel's buttons, without a text."""
        made = set_up(QPushButton(), name=name, role=role, clicked=pressed)
        made.installEventFilter(self)
        return made

    def handles_key(self, key: int) -> bool:
        """Return whether the panel itself handles `key`, which would otherwise move the focus between its buttons."""
        return False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the panel's own keys before its buttons do."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and self.handles_key(event.key()):
            self.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)

    @property
    def has_focus(self) -> bool:
        """Whether the panel receives key presses, or will once its window is active."""
        focused: QWidget | None = self.window().focusWidget()
        return focused is not None and (focused is self or self.isAncestorOf(focused))

    def take_focus(self) -> None:
        """Move the keyboard focus to this panel."""
        if not self.has_focus:
            self._focus_before = self.window().focusWidget()
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def restore_focus(self) -> None:
        """Return the keyboard focus to the widget that had it before, if this panel still has it."""
        before, self._focus_before = self._focus_before, None
        if not self.has_focus:
            return
        self.clearFocus()
        if before is not None and isValid(before) and before.isVisible() and before.isEnabled():
            before.setFocus(Qt.FocusReason.OtherFocusReason)

    def restyle(self, theme: Theme) -> None:
        self.sentence.refit()
        side = theme.space(16)
        self.column.setContentsMargins(side, theme.space(10), side, theme.space(12))
        self.column.setSpacing(theme.space(self._gap))

    def event(self, event: QEvent) -> bool:
        """Handle Esc in this panel."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.leaveRequested.emit()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Press the focused button on Enter. No other key reaches the widgets below the panel; Tab still moves the
        focus out.
        """
        if event.key() in _PRESS_KEYS:
            event.accept()
            button = self.window().focusWidget()
            is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if is_enter and isinstance(button, QPushButton) and self.isAncestorOf(button):
                button.click()
        else:
            super().keyPressEvent(event)
