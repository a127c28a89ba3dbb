"""Work beside the window, in a thread of its own, where what it says is fetched and not sent: a thread that outlives
the window touches nothing of it."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from app.state.worker_messages import ErrorReport, report

Told = tuple[Callable[..., object], tuple[Any, ...]]


class BackgroundTask:
    """Runs `work(errand)` once it is started; that looks at `stop` and speaks by `tell`."""

    def __init__(self, work: Callable[[BackgroundTask], object], name: str) -> None:
        self.stop = threading.Event()
        self._told: SimpleQueue[Told] = SimpleQueue()
        self._thread = threading.Thread(target=work, args=(self,), name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def tell(self, slot: Callable[..., object], *values: Any) -> None:
        """Have `slot` called with these on the main thread, soon."""
        self._told.put((slot, values))

    def deliver(self) -> bool:
        """Call what there is to be called; True when nothing will follow."""
        is_over = not self._thread.is_alive()
        try:
            while True:
                slot, values = self._told.get_nowait()
                slot(*values)
        except Empty:
            return is_over

    def end(self, seconds: float) -> None:
        """Ask it to stop, and wait for that, but not for ever."""
        self.stop.set()
        self._thread.join(seconds)


def report_of(error: Exception) -> ErrorReport:
    """What has ended an errand, in words; the details say where."""
    return report(error, "".join(traceback.format_exception(error)))
