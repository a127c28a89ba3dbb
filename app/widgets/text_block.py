"""Selectable text that changes often: its surroundings are laid out anew only when its height changes."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.widgets.plain_text import PlainLabel, RichLabel


class TextBlock(QWidget):
    """A wrapped label. A label by itself asks for a new layout of everything at every change of its text."""

    def __init__(self, parent: QWidget | None = None, role: str = "", rich: bool = False) -> None:
        super().__init__(parent)
        self.label = RichLabel("", self) if rich else PlainLabel(self)
        self.label.setWordWrap(True)
        flags = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        self.label.setTextInteractionFlags(flags)
        self.label.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        if role:
            self.label.setProperty("role", role)
        self._min_height = self._height = 0
        self._heights: dict[tuple[int, str], int] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def text(self) -> str:
        """What it says."""
        return self.label.text()

    def set_text(self, text: str) -> None:
        """Say something else."""
        if text == self.label.text():
            return
        self.label.setText(text)
        self._heights.clear()
        self._update_height()

    def set_min_text_height(self, pixels: int) -> None:
        """Keep room for that much, so that shorter texts move nothing."""
        self._min_height = pixels
        self.refit()

    def refit(self) -> None:
        """Measure again, after the font has changed."""
        self._height = -1
        self._heights.clear()
        self._update_height()

    def _update_height(self) -> None:
        height = self.heightForWidth(self.width())
        if height != self._height:
            self._height = height
            self.updateGeometry()

    def heightForWidth(self, width: int) -> int:
        """Height of the wrapped text, or the least one. Layouts ask several times over for the same width."""
        key = width, self.label.font().key()
        if key not in self._heights:
            self._heights[key] = self.label.heightForWidth(max(1, width))
        return max(self._min_height, self._heights[key])

    def sizeHint(self) -> QSize:
        """Wide enough for a few words."""
        return QSize(120, self.heightForWidth(max(120, self.width())))

    def minimumSizeHint(self) -> QSize:
        """It can be narrow."""
        return QSize(60, self._min_height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The label fills it."""
        self.label.setGeometry(self.rect())
        super().resizeEvent(event)
