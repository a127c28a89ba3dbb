"""Hidden runs for comparison with the shown one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from decodescope.app.state.worker_messages import RunRequest


class MeasurementProgress(NamedTuple):
    """Progress of the hidden runs."""

    done: int
    total: int
    seconds_left: float | None = None
    """Estimated from the finished runs, including model loading; None before the first has finished."""


class SideRunQueue:
    """Queue of the hidden runs.

    For a fair comparison each starts without a prefix cache and keeps its cache type; a failing run does not stop the
    others.
    """

    def __init__(self) -> None:
        self._waiting: list[RunRequest] = []
        self._total = self._done = 0
        self._start_time = 0.0

    @property
    def is_done(self) -> bool:
        """Whether the queue is empty."""
        return not self._waiting

    @property
    def progress(self) -> MeasurementProgress:
        """The current progress."""
        done, total = self._done, self._total
        passed = time.monotonic() - self._start_time
        return MeasurementProgress(done, total, passed / done * (total - done) if done else None)

    def set_requests(self, requests: Sequence[RunRequest]) -> None:
        """Replace the queue by these requests."""
        self._waiting = [replace(request, prefix_budget=0, memory_fallback=False) for request in requests]
        self._total, self._done = len(requests), 0
        self._start_time = time.monotonic()

    def next(self) -> RunRequest:
        """Return the next request. Raises IndexError if the queue is empty."""
        return self._waiting.pop(0)

    def count_finished(self) -> MeasurementProgress:
        """Count a finished run and return the progress."""
        self._done += 1
        return self.progress

    def clear(self) -> None:
        """Clear the queue."""
        self._waiting.clear()
