"""Runs beside the shown one, so that things can be compared."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from app.state.worker_messages import RunRequest


class MeasurementProgress(NamedTuple):
    """How far the runs beside the shown one have come."""

    done: int
    total: int
    seconds_left: float | None = None
    """By what those that are done have taken, models loaded on the way included; None before the first is done."""


class SideRunQueue:
    """The runs that are still to be measured, one after another.

    Each begins from nothing and stays with its cache, so that they can be compared; one that fails leaves the others
    their turn.
    """

    def __init__(self) -> None:
        self._waiting: list[RunRequest] = []
        self._total = self._done = 0
        self._start_time = 0.0

    @property
    def is_done(self) -> bool:
        """Whether none is left."""
        return not self._waiting

    @property
    def progress(self) -> MeasurementProgress:
        """How far they have come by now."""
        done, total = self._done, self._total
        passed = time.monotonic() - self._start_time
        return MeasurementProgress(done, total, passed / done * (total - done) if done else None)

    def set_requests(self, requests: Sequence[RunRequest]) -> None:
        """Measure these, and nothing planned before."""
        self._waiting = [replace(request, prefix_budget=0, memory_fallback=False) for request in requests]
        self._total, self._done = len(requests), 0
        self._start_time = time.monotonic()

    def next(self) -> RunRequest:
        """The next one. Raises IndexError when none is left."""
        return self._waiting.pop(0)

    def count_finished(self) -> MeasurementProgress:
        """One has ended."""
        self._done += 1
        return self.progress

    def clear(self) -> None:
        """Leave out what has not begun."""
        self._waiting.clear()
