"""Buttons that attach audio or images to the prompt, one for each kind the model supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMenu, QPushButton, QVBoxLayout, QWidget

from decodescope.app.state.media import KINDS, PICTURE, SOUND, BundledMedium, Medium
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.building import STRETCH, arrange, set_up, show_text
from decodescope.app.widgets.flow_layout import FlowRow
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.labels import ElidedLabel, WrappedLabel
from decodescope.app.widgets.media_preview import MediumThumbnail, image_from_rgb
from decodescope.app.widgets.overlays import FocusRing
from decodescope.app.widgets.plain_text import caption, tooltip
from decodescope.resources.language import join_sentences, mark, tr

TITLES = {SOUND: mark("Audio…"), PICTURE: mark("Image…")}
_TIPS = {
    SOUND: mark("Attach audio: a file, a microphone recording or an example"),
    PICTURE: mark("Attach an image: a file, the clipboard or an example"),
}


class AttachButton(QPushButton):
    """Button with a menu to attach media.

    Emits `openRequested(kind)`, `recordRequested`, `pasteRequested`, `sampleChosen(path)`, and `opened` before its menu
    opens.
    """

    openRequested = Signal(str)
    recordRequested = Signal()
    pasteRequested = Signal()
    sampleChosen = Signal(str)
    opened = Signal()

    def __init__(self, kind: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = kind
        set_up(self, name=f"attach.{kind}", role="chip")
        self.setText(tr(TITLES[kind]))
        set_up(self, accessible_name=tr(TITLES[kind]), tooltip=tr(_TIPS[kind]))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        menu.addAction(tr("Open a file…")).triggered.connect(self._on_open)
        self.record: QAction | None = None
        self.paste: QAction | None = None
        if kind == SOUND:
            self.record = menu.addAction(tr("Record…"))
            self.record.triggered.connect(self.recordRequested)
        else:
            self.paste = menu.addAction(tr("Paste"))
            self.paste.triggered.connect(self.pasteRequested)
        self._samples = menu.addSection(tr("Examples"))
        menu.triggered.connect(self._on_triggered)
        menu.aboutToShow.connect(self.opened)
        self.setMenu(menu)

    def update_menu(self, samples: Sequence[BundledMedium], recording_unsupported_reason: str, can_paste: bool) -> None:
        """Update the menu; `recording_unsupported_reason`: what to install before recording is possible."""
        menu = self.menu()
        for action in [action for action in menu.actions() if action.data()]:
            menu.removeAction(action)
        for sample in samples:
            action = menu.addAction(caption(sample.title))
            action.setData(sample.path)
        self._samples.setVisible(bool(samples))
        if self.record is not None:
            self.record.setEnabled(not recording_unsupported_reason)
            self.record.setToolTip(tooltip(recording_unsupported_reason))
            self.record.setText(
                tr("Record…") if not recording_unsupported_reason else tr("Record… (a package is missing)")
            )
        if self.paste is not None:
            self.paste.setEnabled(can_paste)

    @Slot()
    def _on_open(self) -> None:
        self.openRequested.emit(self.kind)

    @Slot(QAction)
    def _on_triggered(self, action: QAction) -> None:
        if action.data():
            self.sampleChosen.emit(action.data())


_REMOVE = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)


class MediaCard(Themed, QFrame):
    """Emits `removeRequested(number)` and `playRequested(path)`: by the mouse, or by Delete and Space while it has the
    focus.
    """

    removeRequested = Signal(int)
    playRequested = Signal(str)

    def __init__(self, number: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.index = number
        """Index among the prompt's media."""
        self.medium = Medium("", "")
        set_up(self, name=f"mediaCard.{number}", role="card")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.thumbnail = MediumThumbnail(self)
        self.name, self.facts = ElidedLabel(), ElidedLabel()
        self.facts.setProperty("role", "muted")
        self.reason = set_up(WrappedLabel(), name="mediaReason", role="muted")
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
        """Show the file; `unsupported_reason` is the reason why the model cannot use it, which greys the card."""
        self.medium = medium
        reason = (
            join_sentences(medium.error.cause, medium.error.remedy) if medium.error is not None else unsupported_reason
        )
        self.name.setText(medium.name)
        show_text(self.facts, "" if medium.error is not None else medium.facts or tr("reading…"))
        show_text(self.reason, reason)
        for part in (self.thumbnail, self.name, self.facts):
            part.setEnabled(not reason)
        self.play.setVisible(medium.kind == SOUND and can_play)
        self._show_thumbnail(medium)
        self.setAccessibleName(medium.description)
        set_up(self, description=reason or tr("Press Delete to remove."), tooltip=tooltip(medium.path))
        self.remove.setAccessibleName(tr("Remove {name}").format(name=medium.name))
        self.play.setAccessibleName(tr("Play {name}").format(name=medium.name))

    def show_playback(self, fraction: float) -> None:
        """Show the played fraction; 1 means playback has ended."""
        is_on = fraction < 1
        self.thumbnail.set_played_fraction(fraction if is_on else 0.0)
        self.play.setChecked(is_on)

    def restyle(self, theme: Theme) -> None:
        self.name.setFont(theme.font(13, 500))
        self.facts.setFont(theme.font(12, tabular=True))
        self.reason.setFont(theme.font(12))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Remove the card on Delete, play it on Space."""
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
        words = arrange(QVBoxLayout(), STRETCH, self.name, self.facts, STRETCH, spacing=1)
        row = arrange(QHBoxLayout(), self.thumbnail, (words, 1), self.play, self.remove, spacing=8)
        arrange(QVBoxLayout(self), row, self.reason, margins=(7, 7, 5, 7), spacing=4)
        self.set_theme(theme_for("light"))

    @Slot()
    def _on_play(self) -> None:
        self.playRequested.emit(self.medium.path)

    @Slot()
    def _on_remove(self) -> None:
        self.removeRequested.emit(self.index)


class MediaBar(Themed, QWidget):
    """Cards of the attached media and the attach buttons; forwards their signals."""

    removeRequested = Signal(int)
    playRequested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("mediaBar")
        self.cards: list[MediaCard] = []
        self.buttons: Mapping[str, AttachButton] = {kind: AttachButton(kind, self) for kind in KINDS}
        self.required_label = set_up(WrappedLabel(parent=self), name="mediaWanted", role="muted")
        self.required_label.hide()
        self._row = FlowRow(self)
        for button in self.buttons.values():
            self._row.flow.addWidget(button)
            button.hide()
        self._column = arrange(QVBoxLayout(self), self.required_label, self._row, margins=0, spacing=6)

    def show_buttons(self, kinds: Sequence[str]) -> None:
        """Show the buttons for the kinds the model supports."""
        for kind, button in self.buttons.items():
            button.setVisible(kind in kinds)
        self._row.setVisible(bool(kinds))
        self._row.updateGeometry()
        self._update_visibility()

    def show_media(self, media: Sequence[tuple[Medium, str]], can_play: bool) -> None:
        """Show a card for each (medium, reason why the model cannot use it)."""
        while len(self.cards) > len(media):
            self._remove_card(self.cards.pop())
        while len(self.cards) < len(media):
            self._add()
        for card, (medium, why_not) in zip(self.cards, media, strict=True):
            card.show_medium(medium, why_not, can_play)
        self._update_visibility()

    def show_required(self, text: str) -> None:
        """Show which media the model requires; an empty text hides the message."""
        show_text(self.required_label, text)

    def show_playback(self, path: str, fraction: float) -> None:
        """Show the playback position of an audio file."""
        for card in self.cards:
            if card.medium.path == path:
                card.show_playback(fraction)

    def _add(self) -> None:
        card = MediaCard(len(self.cards), self)
        card.removeRequested.connect(self._on_remove)
        card.playRequested.connect(self.playRequested)
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
        if number >= len(self.cards):  # a second click before the card is deleted
            return
        had_focus = self.cards[number].hasFocus()
        self.removeRequested.emit(number)
        if had_focus and self.cards:
            self.cards[min(number, len(self.cards) - 1)].setFocus()

    def _update_visibility(self) -> None:
        """Hide the bar if it is empty."""
        self.setVisible(bool(self.cards) or not self._row.isHidden())
