"""A panel at the foot of the window: a heading, a sentence like a subtitle, and a way to leave."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal, SignalInstance
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from app.theme.theme import Theme
from app.widgets.plain_text import PlainLabel
from app.widgets.text_block import TextBlock


class FootPanel(QFrame):
    """Covers nothing: it has a place of its own. Esc in it leaves it, before it stops a run."""

    nextWanted = Signal()
    leaveWanted = Signal()

    def __init__(self, gap: int, parent: QWidget | None = None) -> None:
        """`gap`: pixels at 100 % between what stands below each other."""
        super().__init__(parent)
        self.setProperty("role", "foot")
        self._gap = gap
        self.title, self.sentence = PlainLabel(), TextBlock(self, "spoken")
        self.title.setProperty("role", "heading")
        self.column = QVBoxLayout(self)

    def button(self, name: str, pressed: SignalInstance, role: str = "quiet") -> QPushButton:
        """One of its buttons, which has no words yet."""
        made = QPushButton()
        made.setObjectName(name)
        made.setProperty("role", role)
        made.clicked.connect(pressed)
        return made

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
                self.leaveWanted.emit()
            return True
        return super().event(event)
