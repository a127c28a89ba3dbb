"""When a process did what, on the clock that all processes of a machine share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from core.labs.scale.pipeline_schedule import WAIT, Box


def now_ms() -> float:
    """Milliseconds since some moment, the same for all processes."""
    return time.perf_counter() * 1000


class BoxRecorder:
    """Takes down boxes of one device."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._waiting_since = 0.0
        self.boxes: list[Box] = []

    def clear(self) -> None:
        """Forget what was."""
        self.boxes.clear()
        self._waiting_since = 0.0

    def start_waiting(self) -> None:
        """From here on, until the next box, it waits for what that needs."""
        self._waiting_since = now_ms()

    @contextmanager
    def box(self, kind: str, micro_batch: int, version: int = 0) -> Iterator[None]:
        """What is done within is one box; the wait before it, where there was one, another."""
        began = now_ms()
        if self._waiting_since:
            self.boxes.append(Box(self._device, self._waiting_since, began, WAIT, micro_batch, version))
            self._waiting_since = 0.0
        yield
        self.boxes.append(Box(self._device, began, now_ms(), kind, micro_batch, version))

    def extend_last(self) -> None:
        """The last box lasts until now."""
        self.boxes[-1] = replace(self.boxes[-1], stop=now_ms())
