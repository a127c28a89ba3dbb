"""How far a download has come, how fast it goes and how long it will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

WINDOW_SECONDS = 5.0
"""Speed is that of the last so many seconds."""
_REPORT_INTERVAL = 0.1

DOWNLOADING, VERIFYING, WAITING, FINISHED = "downloading", "verifying", "waiting", "finished"


@dataclass(frozen=True, slots=True)
class Progress:
    """One moment of a download."""

    name: str
    """Of the model."""
    file: str
    """The one under way; empty when all are there."""
    done: int
    """Bytes that are there, of all files; what an earlier download has left counts."""
    total: int
    speed: float = 0.0
    """Bytes a second, of late; 0 while that is not known."""
    left: float | None = None
    """Seconds until the end at that speed, or until the hub may be asked again while waiting; None if unknown."""
    state: str = DOWNLOADING
    """downloading, verifying, waiting (the hub asked for that) or finished."""


class DownloadMeter:
    """Counts bytes and tells `listener` now and then, ten times a second at most."""

    def __init__(
        self,
        name: str,
        total: int,
        listener: Callable[[Progress], object] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._total, self._listener, self._clock = name, total, listener, clock
        self._file = ""
        self._done = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._last_report = float("-inf")

    def begin_file(self, file: str, existing_bytes: int) -> None:
        """From now on it is this file; so many of its bytes are there already."""
        self._file = file
        self._done += existing_bytes
        self.report(DOWNLOADING)

    def add(self, count: int) -> None:
        """So many bytes more; fewer, where a file begins anew."""
        now = self._clock()
        self._done += count
        self._recent.append((now, count))
        while self._recent and self._recent[0][0] < now - WINDOW_SECONDS:
            self._recent.popleft()
        if now - self._last_report >= _REPORT_INTERVAL:
            self.report(DOWNLOADING)

    def report(self, state: str, seconds_left: float | None = None) -> None:
        """Say how it stands, whenever it was said last."""
        self._last_report = self._clock()
        if self._listener is None:
            return
        speed = self._speed() if state == DOWNLOADING else 0.0
        if speed:
            seconds_left = (self._total - self._done) / speed
        file = "" if state == FINISHED else self._file
        self._listener(Progress(self._name, file, self._done, self._total, speed, seconds_left, state))

    def _speed(self) -> float:
        """Bytes a second; 0 until there is something to measure by."""
        took = self._last_report - self._recent[0][0] if self._recent else 0.0
        return max(0.0, sum(count for _, count in self._recent) / took) if took > _REPORT_INTERVAL else 0.0
