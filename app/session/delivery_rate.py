"""When events are handed to the window: soon where drawing is quick, later where it takes much of the thread's time."""

from __future__ import annotations

import math
import time

MIN_INTERVAL, MAX_INTERVAL = 1 / 30, 1 / 5
"""Seconds between two batches; the first token waits for none. At the longest a batch holds hundreds of tokens:
nobody reads them as they come, and each drawing in between takes the run's own time."""
MAX_DRAWING_FRACTION = 0.03
"""Share of its time that this thread may draw while a run is under way: both threads need the interpreter's lock, so
what one of them uses the other cannot have."""


class DeliveryRate:
    """When the next batch is due."""

    def __init__(self) -> None:
        self.interval = MIN_INTERVAL
        self._last = (-math.inf, 0.0)
        self._batches = 0

    def begin(self) -> None:
        """A run begins: its first batch is due soon, for a short prompt is read by then. What drawing takes is known
        from the runs before."""
        self._last, self._batches = (time.monotonic() + MIN_INTERVAL - self.interval, time.thread_time()), 0

    def seconds_until_due(self) -> float:
        """Seconds until the next batch is due; not above 0 when it is."""
        return self._last[0] + self.interval - time.monotonic()

    def record_batch(self) -> None:
        """A batch goes out now; what this thread has computed since the last one was the drawing of that. The first of
        a run is a single token, which says nothing of a page of them."""
        now = (time.monotonic(), time.thread_time())
        if self._batches > 1:
            due = (now[1] - self._last[1]) / MAX_DRAWING_FRACTION
            self.interval += (min(MAX_INTERVAL, max(MIN_INTERVAL, due)) - self.interval) / 3
        self._last, self._batches = now, self._batches + 1
