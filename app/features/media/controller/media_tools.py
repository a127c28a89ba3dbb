"""Media input and playback: dialogs, clipboard, microphone, loudspeaker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter

from decodescope.app.features.media.panel.media_bar import MediaBar
from decodescope.app.features.media.session.sound_device import audio_unavailable_reason
from decodescope.app.state.media import file_filter
from decodescope.app.state.worker_messages import make_error_report
from decodescope.app.storage.examples import bundled_media
from decodescope.app.storage.json_files import new_recording_path, save_pasted_picture
from decodescope.app.widgets.file_dialogs import open_file_dialog
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.features.media.panel.recorder import RecorderDialog
    from decodescope.app.features.media.session.audio import Loudspeaker, Microphone


class MediaTools(QObject):
    """Adds and plays media. `filesAdded(paths)`: files for the prompt; `failed(ErrorReport)`."""

    filesAdded = Signal(list)
    failed = Signal(object)

    def __init__(self, bar: MediaBar, data: Callable[[], Path], parent: QObject) -> None:
        super().__init__(parent)
        self._bar, self._data = bar, data
        self._loudspeaker: Loudspeaker | None = None
        bar.playRequested.connect(self.play_or_stop)
        for button in bar.buttons.values():
            button.openRequested.connect(self.choose_file)
            button.recordRequested.connect(self.record)
            button.pasteRequested.connect(self.paste)
            button.sampleChosen.connect(self._on_sample)
            button.opened.connect(self._update_menus)

    @property
    def can_play(self) -> bool:
        """Whether audio can be played here, judged by the installed packages."""
        return not audio_unavailable_reason()

    @Slot(str)
    def choose_file(self, kind: str) -> None:
        """Open a file dialog for this kind of media."""
        open_file_dialog(self._bar, tr("Choose a file"), file_filter(kind), self._on_sample)

    @Slot()
    def paste(self) -> None:
        """Add the picture on the clipboard."""
        self.add_picture(QGuiApplication.clipboard().image())

    def add_picture(self, picture: QImage) -> None:
        """Save a picture that has no file yet, and emit `filesAdded` with its path."""
        content = QByteArray()
        buffer = QBuffer(content)
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        QImageWriter(buffer, QByteArray(b"png")).write(picture)
        try:
            path = save_pasted_picture(self._data(), bytes(content.data()))
        except DecodescopeError as error:
            self.failed.emit(make_error_report(error))
        else:
            self.filesAdded.emit([str(path)])

    @Slot()
    def record(self) -> RecorderDialog | None:
        """Open the recorder and start recording; return None if there is no microphone."""
        from decodescope.app.features.media.panel.recorder import RecorderDialog
        from decodescope.app.features.media.session.audio import MAX_SECONDS, Microphone

        dialog = RecorderDialog(MAX_SECONDS, self._bar.window())
        microphone = Microphone(new_recording_path(self._data(), datetime.now()), dialog)
        try:
            microphone.start()
        except DecodescopeError as error:
            dialog.deleteLater()
            self.failed.emit(make_error_report(error))
            return None
        self._connect_recorder(dialog, microphone)
        dialog.open()
        return dialog

    @Slot(str)
    def play_or_stop(self, path: str) -> None:
        """Play the file, or stop it if it is playing."""
        if self._loudspeaker is None:
            from decodescope.app.features.media.session.audio import Loudspeaker

            self._loudspeaker = Loudspeaker(self)
            self._loudspeaker.played.connect(self._bar.show_playback)
            self._loudspeaker.failed.connect(self.failed)
        if self._loudspeaker.path == path:
            self._loudspeaker.stop()
        else:
            self._loudspeaker.play(path)

    @Slot()
    def stop_playback(self) -> None:
        """Stop playback."""
        if self._loudspeaker is not None:
            self._loudspeaker.stop()

    def close(self) -> None:
        """Release the audio device when the window closes."""
        if self._loudspeaker is not None:
            self._loudspeaker.close()

    def _connect_recorder(self, dialog: RecorderDialog, microphone: Microphone) -> None:
        microphone.levelChanged.connect(dialog.show_level)
        microphone.failed.connect(self.failed)
        microphone.ended.connect(dialog.close_kept)
        microphone.ended.connect(self._on_recorded)
        dialog.stopRequested.connect(microphone.stop)
        dialog.forgetRequested.connect(microphone.discard)
        dialog.finished.connect(dialog.deleteLater)

    @Slot()
    def _update_menus(self) -> None:
        """Update the entries of the menus."""
        can_paste = not QGuiApplication.clipboard().image().isNull()
        for button in self._bar.buttons.values():
            button.update_menu(bundled_media(button.kind), audio_unavailable_reason(), can_paste)

    @Slot(str)
    def _on_sample(self, path: str) -> None:
        self.filesAdded.emit([path])

    @Slot(str)
    def _on_recorded(self, path: str) -> None:
        if path:
            self.filesAdded.emit([path])
