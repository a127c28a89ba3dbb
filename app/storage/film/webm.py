"""A WebM, made by ffmpeg where that is installed: frames go through a pipe, none to the disk."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from app.storage.film.frame import FilmError, Frame
from resources.language import tr

FFMPEG, RATE = "ffmpeg", 25
"""Frames a second."""


def webm_unsupported_reason() -> str:
    """Why none can be made here; empty where one can."""
    return "" if shutil.which("ffmpeg") else tr("A WebM is made by ffmpeg, which was not found here.")


class WebmWriter:
    """Repeats each frame for as long as it is shown."""

    def __init__(self, path: Path) -> None:
        if why := webm_unsupported_reason():
            raise FilmError(why)
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._frames_written = self._due_milliseconds = 0

    def add(self, frame: Frame) -> None:
        """The next one, so many times as its time takes; no error adds up."""
        process = self._process or self._start(frame)
        assert process.stdin is not None, "it was started with a pipe"
        self._due_milliseconds += frame.milliseconds
        while self._frames_written * 1000 < self._due_milliseconds * RATE:
            try:
                process.stdin.write(frame.pixels)
            except BrokenPipeError:
                raise self._ffmpeg_error() from None
            self._frames_written += 1

    def close(self) -> None:
        """Wait for ffmpeg to write the end."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
            if self._process.wait() != 0:
                raise self._ffmpeg_error()

    def discard(self) -> None:
        """Nothing is left of it."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._path.unlink(missing_ok=True)

    def _start(self, frame: Frame) -> subprocess.Popen[bytes]:
        even = "pad=ceil(iw/2)*2:ceil(ih/2)*2"
        command = [
            FFMPEG, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb0",
            "-s", f"{frame.width}x{frame.height}", "-r", str(RATE), "-i", "-", "-vf", even,
            "-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-b:v", "0", "-crf", "30", "-f", "webm", str(self._path),
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        return self._process

    def _ffmpeg_error(self) -> FilmError:
        return FilmError(tr("ffmpeg could not make a WebM of this. Choose an animated PNG instead."))
