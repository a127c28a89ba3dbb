"""Above the prompt: the sounds and pictures that go with it, and the buttons that bring more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.panels.media.attach import AttachButton
from app.panels.media.card import MediaCard
from app.state.media import KINDS, Medium
from app.theme.theme import Theme
from app.widgets.flow_layout import FlowRow
from app.widgets.wrapped_label import WrappedLabel


class MediaBar(QWidget):
    """Says what it is asked for by the signals of its cards and buttons, passed on."""

    removeRequested = Signal(int)
    playRequested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("mediaBar")
        self._theme: Theme | None = None
        self.cards: list[MediaCard] = []
        self.buttons: Mapping[str, AttachButton] = {kind: AttachButton(kind, self) for kind in KINDS}
        self.required_label = WrappedLabel(parent=self)
        self.required_label.setObjectName("mediaWanted")
        self.required_label.setProperty("role", "muted")
        self.required_label.hide()
        self._row = FlowRow(self)
        for button in self.buttons.values():
            self._row.flow.addWidget(button)
            button.hide()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._column.addWidget(self.required_label)
        self._column.addWidget(self._row)

    def show_buttons(self, kinds: Sequence[str]) -> None:
        """Show the buttons of what the model takes."""
        for kind, button in self.buttons.items():
            button.setVisible(kind in kinds)
        self._row.setVisible(bool(kinds))
        self._row.updateGeometry()
        self._update_visibility()

    def show_media(self, media: Sequence[tuple[Medium, str]], can_play: bool) -> None:
        """A card for each (file, why the model cannot have it)."""
        while len(self.cards) > len(media):
            self._remove_card(self.cards.pop())
        while len(self.cards) < len(media):
            self._add()
        for card, (medium, why_not) in zip(self.cards, media, strict=True):
            card.show_medium(medium, why_not, can_play)
        self._update_visibility()

    def show_required(self, text: str) -> None:
        """The model cannot do without; empty where it can, or has what it needs."""
        self.required_label.setText(text)
        self.required_label.setVisible(bool(text))

    def show_playback(self, path: str, fraction: float) -> None:
        """A sound is being heard."""
        for card in self.cards:
            if card.medium.path == path:
                card.show_playback(fraction)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        for card in self.cards:
            card.set_theme(theme)

    def _add(self) -> None:
        card = MediaCard(len(self.cards), self)
        card.removeRequested.connect(self._on_remove)
        card.playRequested.connect(self.playRequested)
        if self._theme is not None:
            card.set_theme(self._theme)
        self._column.insertWidget(len(self.cards), card)
        self.cards.append(card)
        card.show()

    def _remove_card(self, card: MediaCard) -> None:
        self._column.removeWidget(card)
        card.hide()
        card.deleteLater()

    @Slot(int)
    def _on_remove(self, number: int) -> None:
        had_focus = self.cards[number].hasFocus()
        self.removeRequested.emit(number)
        if had_focus and self.cards:
            self.cards[min(number, len(self.cards) - 1)].setFocus()

    def _update_visibility(self) -> None:
        """Nothing to show takes no room."""
        self.setVisible(bool(self.cards) or not self._row.isHidden())
