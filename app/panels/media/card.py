"""A sound or a picture that goes with the prompt: how it looks or sounds, its name, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.state.media import SOUND, Medium
from app.theme.theme import Theme, theme_for
from app.widgets.elided_label import ElidedLabel
from app.widgets.focus_ring import FocusRing
from app.widgets.icons import IconButton
from app.widgets.media.drawing import image_from_rgb
from app.widgets.media.face import MediumThumbnail
from app.widgets.plain_text import tooltip
from app.widgets.wrapped_label import WrappedLabel
from resources.language import join_sentences, tr

_REMOVE = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)


class MediaCard(QFrame):
    """`removeRequested(number)`, `playRequested(path)`: by the mouse, or by Delete and Space while it has the focus."""

    removeRequested = Signal(int)
    playRequested = Signal(str)

    def __init__(self, number: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.index = number
        """Its place among those of the prompt."""
        self.medium = Medium("", "")
        self.setObjectName(f"mediaCard.{number}")
        self.setProperty("role", "card")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.thumbnail = MediumThumbnail(self)
        self.name, self.facts = ElidedLabel(), ElidedLabel()
        self.facts.setProperty("role", "muted")
        self.reason = WrappedLabel()
        self.reason.setObjectName("mediaReason")
        self.reason.setProperty("role", "muted")
        self.reason.hide()
        self.play = IconButton("play", tr("Play"), self, checked_name="stop")
        self.play.setCheckable(True)
        self.play.hide()
        self.remove = IconButton("close", tr("Remove"), self)
        self._ring = FocusRing(self)
        self._lay_out()
        self.play.clicked.connect(self._on_play)
        self.remove.clicked.connect(self._on_remove)

    def show_medium(self, medium: Medium, unsupported_reason: str, can_play: bool) -> None:
        """Show the file; `unsupported_reason`: why the model cannot have it, which greys the card."""
        self.medium = medium
        reason = (
            join_sentences(medium.error.cause, medium.error.remedy) if medium.error is not None else unsupported_reason
        )
        self.name.setText(medium.name)
        self.facts.setText("" if medium.error is not None else medium.facts or tr("reading…"))
        self.facts.setVisible(bool(self.facts.text()))
        self.reason.setText(reason)
        self.reason.setVisible(bool(reason))
        for part in (self.thumbnail, self.name, self.facts):
            part.setEnabled(not reason)
        self.play.setVisible(medium.kind == SOUND and can_play)
        self._show_thumbnail(medium)
        self.setAccessibleName(medium.description)
        self.setAccessibleDescription(reason or tr("Delete removes it."))
        self.setToolTip(tooltip(medium.path))
        self.remove.setAccessibleName(tr("Remove {name}").format(name=medium.name))
        self.play.setAccessibleName(tr("Play {name}").format(name=medium.name))

    def show_playback(self, fraction: float) -> None:
        """So much of it has been heard; 1: it is silent."""
        is_on = fraction < 1
        self.thumbnail.set_played_fraction(fraction if is_on else 0.0)
        self.play.setChecked(is_on)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        for part in (self.thumbnail, self.play, self.remove, self._ring):
            part.set_theme(theme)
        self.name.setFont(theme.font(13, 500))
        self.facts.setFont(theme.font(12, tabular=True))
        self.reason.setFont(theme.font(12))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete removes it, Space plays it."""
        if event.key() in _REMOVE:
            self._on_remove()
        elif event.key() == Qt.Key.Key_Space and self.play.isVisible():
            self.play.click()
        else:
            super().keyPressEvent(event)

    def _show_thumbnail(self, medium: Medium) -> None:
        if medium.thumbnail is not None:
            self.thumbnail.show_picture(image_from_rgb(*medium.thumbnail))
        else:
            self.thumbnail.show_sound(medium.peaks)

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addStretch(1)
        words.addWidget(self.name)
        words.addWidget(self.facts)
        words.addStretch(1)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.thumbnail)
        row.addLayout(words, 1)
        row.addWidget(self.play)
        row.addWidget(self.remove)
        column = QVBoxLayout(self)
        column.setContentsMargins(7, 7, 5, 7)
        column.setSpacing(4)
        column.addLayout(row)
        column.addWidget(self.reason)
        self.set_theme(theme_for("light"))

    @Slot()
    def _on_play(self) -> None:
        self.playRequested.emit(self.medium.path)

    @Slot()
    def _on_remove(self) -> None:
        self.removeRequested.emit(self.index)
