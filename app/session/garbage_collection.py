"""Garbage collection on the main thread only.

Python collects cycles in whichever thread allocates. A collection in the worker would destroy widgets in the wrong
thread, which crashes Qt; a full one would block the window while tokens stream.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QObject, QTimer, Slot

INTERVAL_MS = 500
BUSY_INTERVALS = 4
"""Intervals between two collections during a run; a collection takes about 20 ms then."""
_users = 0


@contextmanager
def collection_paused() -> Iterator[None]:
    """Disable collection while the window is built, as none of its objects is garbage yet."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on and not _users:
            gc.enable()


class GarbageCollector(QObject):
    """Disables automatic collection and collects from a timer of its own thread, until `stop`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._is_busy, self._was_idle = False, True
        self._skipped = 0
        self._running = False
        self._timer = QTimer(self, interval=INTERVAL_MS)
        self._timer.timeout.connect(self.collect)

    def set_busy(self, busy: bool) -> None:
        """Set whether a run is in progress. Collection is rarer then, and limited to young generations until an
        interval passed without a run.
        """
        self._is_busy, self._was_idle = busy, False

    def start(self) -> None:
        """Replace the automatic collection."""
        global _users
        if not self._running:
            self._running = True
            _users += 1
            gc.disable()
            self._timer.start()

    def stop(self, restore: bool = True) -> None:
        """Restore the automatic collection if no other window needs it off; not while a worker thread that did not end
        may still run.
        """
        global _users
        self._timer.stop()
        if self._running:
            self._running = False
            _users -= 1
            if not _users and restore:
                gc.enable()

    @Slot()
    def collect(self) -> None:
        """Collect the oldest generation that is due, as the interpreter would."""
        if self._is_busy and self._skipped < BUSY_INTERVALS:
            self._skipped += 1
            return
        generations = (2, 1, 0) if self._was_idle else (1, 0)
        self._skipped, self._was_idle = 0, not self._is_busy
        counts, limits = gc.get_count(), gc.get_threshold()
        for generation in generations:
            if counts[generation] > limits[generation] > 0:
                gc.collect(generation)
                return
