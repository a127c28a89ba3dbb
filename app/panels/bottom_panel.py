"""A panel at the foot of the window: a heading, a sentence like a subtitle, and a way to leave."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal, SignalInstance
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget
from shiboken6 import isValid

from app.theme.theme import Theme
from app.widgets.plain_text import PlainLabel
from app.widgets.text_block import TextBlock

_PRESS_KEYS = (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Up, Qt.Key.Key_Down)
"""Keys that press a button or open a list."""


class BottomPanel(QFrame):
    """Covers nothing: it has a place of its own. It has the keyboard while it is open, however it was opened: Esc
    leaves it, before it stops a run, and no key reaches what lies below it."""

    nextRequested = Signal()
    leaveRequested = Signal()

    def __init__(self, gap: int, parent: QWidget | None = None) -> None:
        """`gap`: pixels at 100 % between what stands below each other."""
        super().__init__(parent)
        self.setProperty("role", "foot")
        self._gap = gap
        self._focus_before: QWidget | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title, self.sentence = PlainLabel(), TextBlock(self, "spoken")
        self.title.setProperty("role", "heading")
        self.column = QVBoxLayout(self)

    def create_button(self, name: str, pressed: SignalInstance, role: str = "quiet") -> QPushButton:
        """One of its buttons, which has no words yet."""
        made = QPushButton()
        made.setObjectName(name)
        made.setProperty("role", role)
        made.clicked.connect(pressed)
        made.installEventFilter(self)
        return made

    def handles_key(self, key: int) -> bool:
        """Whether the panel itself handles this key, which would move the focus from one button to the next."""
        return False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the panel's own keys before its buttons do."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and self.handles_key(event.key()):
            self.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)

    @property
    def has_focus(self) -> bool:
        """Whether the keys go to it, or will once its window is the active one."""
        focused: QWidget | None = self.window().focusWidget()
        return focused is not None and (focused is self or self.isAncestorOf(focused))

    def take_focus(self) -> None:
        """Let the keys go to this panel."""
        if not self.has_focus:
            self._focus_before = self.window().focusWidget()
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def restore_focus(self) -> None:
        """Let the keys go where they went before, if they still go to this panel."""
        before, self._focus_before = self._focus_before, None
        if not self.has_focus:
            return
        self.clearFocus()
        if before is not None and isValid(before) and before.isVisible() and before.isEnabled():
            before.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_theme(self, theme: Theme) -> None:
        """Colours and sizes."""
        self.sentence.refit()
        side = theme.space(16)
        self.column.setContentsMargins(side, theme.space(10), side, theme.space(12))
        self.column.setSpacing(theme.space(self._gap))

    def event(self, event: QEvent) -> bool:
        """Esc belongs to it."""
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
            if event.type() == QEvent.Type.KeyPress:
                self.leaveRequested.emit()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter presses the focused button. No key reaches what lies below the panel; Tab still leads out of it."""
        if event.key() in _PRESS_KEYS:
            event.accept()
            button = self.window().focusWidget()
            is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if is_enter and isinstance(button, QPushButton) and self.isAncestorOf(button):
                button.click()
        else:
            super().keyPressEvent(event)
