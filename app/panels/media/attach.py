"""The buttons by which a sound or a picture comes to the prompt, one for each kind that the model takes."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from app.state.media import PICTURE, SOUND, BundledMedium
from app.widgets.plain_text import caption, tooltip
from resources.language import mark, tr

TITLES = {SOUND: mark("Sound…"), PICTURE: mark("Picture…")}
_TIPS = {
    SOUND: mark("Give the model a sound: a file, what a microphone hears, or an example"),
    PICTURE: mark("Give the model a picture: a file, what the clipboard holds, or an example"),
}


class AttachButton(QPushButton):
    """`openRequested(kind)`, `recordRequested`, `pasteRequested`, `sampleChosen(path)`; `opened` before its menu is."""

    openRequested = Signal(str)
    recordRequested = Signal()
    pasteRequested = Signal()
    sampleChosen = Signal(str)
    opened = Signal()

    def __init__(self, kind: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = kind
        self.setObjectName(f"attach.{kind}")
        self.setProperty("role", "chip")
        self.setText(tr(TITLES[kind]))
        self.setAccessibleName(tr(TITLES[kind]))
        self.setToolTip(tr(_TIPS[kind]))
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
        """What there is to choose from now; `recording_unsupported_reason`: what to install first."""
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
