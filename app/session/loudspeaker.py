"""One sound at a time, played from its file."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

import core
from app.session.background_task import BackgroundTask, error_report
from app.session.sound_device import audio_library, to_audio_error
from app.session.task_manager import TaskManager

PLAYBACK_POLL_MS = 50
PLAYBACK_RATE = 48_000
"""Samples a second: what every loudspeaker plays."""


class Loudspeaker(QObject):
    """`played(path, share)` as it goes on, 0 to 1, where 1 is the end; `failed(ErrorReport)`: it cannot be heard."""

    played = Signal(str, float)
    failed = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = TaskManager(self)
        self._stream: Any = None
        self._path = ""
        self._samples: Any = None
        self._position = 0
        self._timer = QTimer(self, interval=PLAYBACK_POLL_MS)
        self._timer.timeout.connect(self._poll)

    @property
    def path(self) -> str:
        """What is being played, or is about to be; empty where nothing is."""
        return self._path

    def play(self, path: str) -> None:
        """Begin, once it has been read; whatever was played before ends."""
        self.stop()
        self._path = path

        def work(errand: BackgroundTask) -> None:
            try:
                errand.post(self._start_stream, path, core.media.samples(path, PLAYBACK_RATE))
            except Exception as error:
                errand.post(self._on_error, path, error)

        self._tasks.start(path, work)

    @Slot()
    def stop(self) -> None:
        """Be silent."""
        path, self._path = self._path, ""
        self._timer.stop()
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        if path:
            self.played.emit(path, 1.0)

    def close(self) -> None:
        """The window closes."""
        self.stop()
        self._tasks.stop_all()

    def _start_stream(self, path: str, samples: Any) -> None:
        if path != self._path:
            return  # stopped meanwhile, or another one was asked for
        self._samples, self._position = samples, 0
        try:
            self._stream = audio_library().OutputStream(
                PLAYBACK_RATE, channels=1, dtype="float32", callback=self._fill_buffer
            )
            self._stream.start()
        except Exception as error:  # whatever the device's library raises
            self._on_error(path, error)
            return
        self._timer.start()

    def _on_error(self, path: str, error: Exception) -> None:
        if path == self._path:
            self.stop()
            self.failed.emit(error_report(to_audio_error(error)))

    def _fill_buffer(self, out: Any, count: int, _time: object, _status: object) -> None:
        """On the device's own thread: the next samples, silence behind the last."""
        part = self._samples[self._position : self._position + count]
        out[: len(part), 0] = part
        out[len(part) :, 0] = 0
        self._position += len(part)

    @Slot()
    def _poll(self) -> None:
        fraction = self._position / len(self._samples)
        if fraction >= 1:
            self.stop()
        else:
            self.played.emit(self._path, fraction)
