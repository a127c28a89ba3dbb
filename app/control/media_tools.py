"""What brings sounds and pictures to the prompt, and plays them: dialogs, clipboard, microphone, loudspeaker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter

from app.panels.media.bar import MediaBar
from app.session.sound_device import why_missing
from app.state.media import filter_of
from app.state.worker_messages import report
from app.storage.examples import samples
from app.storage.media_files import keep_picture, new_recording
from app.theme.theme import Theme
from app.widgets.ask_file import ask_what_to_open
from core.errors import DecodescopeError
from resources.language import tr

if TYPE_CHECKING:
    from app.panels.media.recorder import RecorderPanel
    from app.session.loudspeaker import Loudspeaker
    from app.session.microphone import Microphone


class MediaTools(QObject):
    """`given(paths)`: files that are to go with the prompt; `failed(ErrorReport)`: why there is none."""

    given = Signal(list)
    failed = Signal(object)

    def __init__(self, bar: MediaBar, data: Callable[[], Path], parent: QObject) -> None:
        super().__init__(parent)
        self._bar, self._data = bar, data
        self._loudspeaker: Loudspeaker | None = None
        self.theme: Theme | None = None
        """What dialogs are drawn in."""
        bar.playWanted.connect(self.play_or_stop)
        for button in bar.buttons.values():
            button.openWanted.connect(self.ask)
            button.recordWanted.connect(self.record)
            button.pasteWanted.connect(self.paste)
            button.sampleChosen.connect(self._on_sample)
            button.opened.connect(self._fill)

    @property
    def can_play(self) -> bool:
        """Whether sounds can be heard here, as far as packages tell."""
        return not why_missing()

    @Slot(str)
    def ask(self, kind: str) -> None:
        """Choose a file of that kind."""
        ask_what_to_open(self._bar, tr("Choose a file"), filter_of(kind), self._on_sample)

    @Slot()
    def paste(self) -> None:
        """The clipboard's picture."""
        self.keep(QGuiApplication.clipboard().image())

    def keep(self, picture: QImage) -> None:
        """Keep a picture that has no file yet, and give that."""
        content = QByteArray()
        buffer = QBuffer(content)
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        QImageWriter(buffer, QByteArray(b"png")).write(picture)
        try:
            path = keep_picture(self._data(), bytes(content.data()))
        except DecodescopeError as error:
            self.failed.emit(report(error))
        else:
            self.given.emit([str(path)])

    @Slot()
    def record(self) -> RecorderPanel | None:
        """Listen until the reader says that it is enough; None where nothing can be heard."""
        from app.panels.media.recorder import RecorderPanel
        from app.session.microphone import LONGEST, Microphone

        dialog = RecorderPanel(LONGEST, self._bar.window())
        microphone = Microphone(new_recording(self._data(), datetime.now()), dialog)
        try:
            microphone.start()
        except DecodescopeError as error:
            dialog.deleteLater()
            self.failed.emit(report(error))
            return None
        self._follow(dialog, microphone)
        dialog.open()
        return dialog

    @Slot(str)
    def play_or_stop(self, path: str) -> None:
        """Let it be heard, or end it."""
        if self._loudspeaker is None:
            from app.session.loudspeaker import Loudspeaker

            self._loudspeaker = Loudspeaker(self)
            self._loudspeaker.played.connect(self._bar.show_played)
            self._loudspeaker.failed.connect(self.failed)
        if self._loudspeaker.path == path:
            self._loudspeaker.stop()
        else:
            self._loudspeaker.play(path)

    @Slot()
    def silence(self) -> None:
        """Nothing is to be heard any more."""
        if self._loudspeaker is not None:
            self._loudspeaker.stop()

    def end(self) -> None:
        """The window closes."""
        if self._loudspeaker is not None:
            self._loudspeaker.end()

    def _follow(self, dialog: RecorderPanel, microphone: Microphone) -> None:
        if self.theme is not None:
            dialog.set_theme(self.theme)
        microphone.heard.connect(dialog.show_heard)
        microphone.failed.connect(self.failed)
        microphone.ended.connect(dialog.keep)
        microphone.ended.connect(self._on_recorded)
        dialog.stopWanted.connect(microphone.stop)
        dialog.forgetWanted.connect(microphone.forget)
        dialog.finished.connect(dialog.deleteLater)

    @Slot()
    def _fill(self) -> None:
        """The menus offer what there is now."""
        can_paste = not QGuiApplication.clipboard().image().isNull()
        for button in self._bar.buttons.values():
            button.offer(samples(button.kind), why_missing(), can_paste)

    @Slot(str)
    def _on_sample(self, path: str) -> None:
        self.given.emit([path])

    @Slot(str)
    def _on_recorded(self, path: str) -> None:
        if path:
            self.given.emit([path])
