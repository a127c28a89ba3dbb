"""The words below the view on a stage: what was chosen, why, and how far the run has come."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.theme.theme import Theme
from app.widgets.accessibility.announcements import announce
from app.widgets.elided_label import ElidedLabel
from app.widgets.plain_text import PlainLabel
from app.widgets.wrapped_label import WrappedLabel
from resources.language import tr


class StageCaption(QFrame):
    """A line with the choice and the place, the sentence below it; `middle` is the room between them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("stageCaption")
        self.setProperty("role", "foot")
        self.title, self.progress = ElidedLabel(), PlainLabel()
        self.sentence = WrappedLabel()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.middle = QVBoxLayout()
        self.middle.setContentsMargins(0, 0, 0, 0)
        line = QHBoxLayout()
        line.addWidget(self.title, 1)
        line.addWidget(self.progress)
        column = self._column = QVBoxLayout(self)
        column.addLayout(line)
        column.addLayout(self.middle)
        column.addWidget(self.sentence)
        column.addStretch(1)
        self._max_height = 0

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self.reset_height()
        side, rim = theme.px(14), theme.px(6)
        self._column.setContentsMargins(side, rim, side, rim)
        self._column.setSpacing(theme.px(4))
        self.title.setStyleSheet(f"font-size: {theme.font_pixels(16)}px; font-weight: 600; color: {theme.accent};")
        self.progress.setStyleSheet(f"font-size: {theme.font_pixels(13)}px; color: {theme.muted};")
        self.sentence.setStyleSheet(f"font-size: {theme.font_pixels(14)}px; color: {theme.text};")

    def show_texts(self, title: str, sentence: str, progress: str) -> None:
        """Show these words."""
        self.setAccessibleName(tr("On the stage"))
        self.setAccessibleDescription(sentence)
        self.title.setText(title)
        self.progress.setText(progress)
        if sentence != self.sentence.text():
            self.sentence.setText(sentence)
            if self.isVisible():
                announce(self, sentence)

    def reset_height(self) -> None:
        """Take no more room than the words of now need."""
        self._max_height = 0
        self.setMinimumHeight(0)

    def keep_height(self) -> None:
        """Never become lower than now, so that what is above does not jump from step to step."""
        self._max_height = max(self._max_height, self.sizeHint().height())
        self.setMinimumHeight(self._max_height)
