"""Audio playback of one file at a time."""

from __future__ import annotations

import wave
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope import core
from decodescope.app.features.media.session.sound_device import audio_library, to_audio_error
from decodescope.app.session.background_tasks import BackgroundTask, TaskManager, error_report
from decodescope.app.state.worker_messages import make_error_report as report_of

PLAYBACK_POLL_MS = 50
PLAYBACK_RATE = 48_000
"""Sample rate in Hz that every device supports."""


class Loudspeaker(QObject):
    """Plays one file. `played(path, fraction)`: progress from 0 to 1, where 1 is the end; `failed(ErrorReport)`."""

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
        """The file being read or played; empty if none."""
        return self._path

    def play(self, path: str) -> None:
        """Stop the current file, read `path` and play it."""
        self.stop()
        self._path = path

        def work(task: BackgroundTask) -> None:
            try:
                task.post(self._start_stream, path, core.media.samples(path, PLAYBACK_RATE))
            except Exception as error:
                task.post(self._on_error, path, error)

        self._tasks.start(path, work)

    @Slot()
    def stop(self) -> None:
        """Stop playback."""
        path, self._path = self._path, ""
        self._timer.stop()
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
        if path:
            self.played.emit(path, 1.0)

    def close(self) -> None:
        """Stop and release everything when the window closes."""
        self.stop()
        self._tasks.stop_all()

    def _start_stream(self, path: str, samples: Any) -> None:
        if path != self._path:
            return  # stopped, or replaced by another file
        self._samples, self._position = samples, 0
        try:
            self._stream = audio_library().OutputStream(
                PLAYBACK_RATE, channels=1, dtype="float32", callback=self._fill_buffer
            )
            self._stream.start()
        except Exception as error:  # any error of the device library
            self._on_error(path, error)
            return
        self._timer.start()

    def _on_error(self, path: str, error: Exception) -> None:
        if path == self._path:
            self.stop()
            self.failed.emit(error_report(to_audio_error(error)))

    def _fill_buffer(self, out: Any, count: int, _time: object, _status: object) -> None:
        """Fill the output buffer, on the device's thread; silence after the end."""
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


RECORDING_RATE = 16_000
"""Sample rate in Hz that speech models expect."""
RECORDING_POLL_MS = 50
MAX_SECONDS = 300
"""In seconds."""


class Microphone(QObject):
    """Records to a file. `levelChanged(seconds, level)`: twenty times a second, level 0 to 1; `ended(path)`: stopped by
    the user, the limit or a full disk, empty path without audio; `failed(ErrorReport)`: disk error, before `ended`.
    """

    levelChanged = Signal(float, float)
    ended = Signal(str)
    failed = Signal(object)

    def __init__(self, path: Path, parent: QObject) -> None:
        super().__init__(parent)
        self._path = path
        self._blocks: SimpleQueue[bytes] = SimpleQueue()
        self._file: wave.Wave_write | None = None
        self._stream: Any = None
        self._frames = 0
        self._timer = QTimer(self, interval=RECORDING_POLL_MS)
        self._timer.timeout.connect(self._poll)

    def start(self) -> None:
        """Start recording. Raises SoundDeviceError and leaves no file then."""
        try:
            self._stream = audio_library().RawInputStream(
                RECORDING_RATE, channels=1, dtype="int16", callback=self._on_block
            )
            self._file = _open_wave_file(self._path)
            self._stream.start()
        except Exception as error:  # any error of the device library or the disk
            self.discard()
            raise to_audio_error(error) from error
        self._timer.start()

    @Slot()
    def stop(self) -> None:
        """Stop and keep the recording."""
        if self._file is not None:
            try:
                self._write_blocks()
                self._close()
            except OSError as error:
                self._on_disk_error(error)
                return
            if not self._frames:
                self._path.unlink(missing_ok=True)
            self.ended.emit(str(self._path) if self._frames else "")

    @Slot()
    def discard(self) -> None:
        """Stop and delete the recording."""
        with suppress(OSError):
            self._close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _on_block(self, block: Any, _count: int, _time: object, _status: object) -> None:
        """Queue a block, on the device's thread."""
        self._blocks.put(bytes(block))

    @Slot()
    def _poll(self) -> None:
        """Write queued blocks; stop at the maximum length."""
        try:
            self._write_blocks()
        except OSError as error:
            self._on_disk_error(error)
            return
        if self._frames >= MAX_SECONDS * RECORDING_RATE:
            self.stop()

    def _write_blocks(self) -> None:
        """Write queued blocks and emit their level. Raises OSError."""
        level = 0.0
        with suppress(Empty):
            while True:
                block = self._blocks.get_nowait()
                samples = np.frombuffer(block, np.int16)
                level = max(level, float(np.abs(samples.astype(np.int32)).max(initial=0)) / 32768)
                if self._file is not None:
                    self._file.writeframes(block)
                self._frames += len(samples)
        self.levelChanged.emit(self._frames / RECORDING_RATE, level)

    def _on_disk_error(self, error: OSError) -> None:
        """Handle a disk error: keep what was written."""
        with suppress(OSError):
            self._close()
        if not self._frames:
            self.discard()
        self.failed.emit(report_of(to_audio_error(error)))
        self.ended.emit(str(self._path) if self._frames else "")

    def _close(self) -> None:
        self._timer.stop()
        stream, file = self._stream, self._file
        self._stream = self._file = None
        if stream is not None:
            stream.close()
        if file is not None:
            file.close()


def _open_wave_file(path: Path) -> wave.Wave_write:
    """Open a WAV file whose header is updated after every block."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = wave.open(str(path), "wb")
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(RECORDING_RATE)
    return file
