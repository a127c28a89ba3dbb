"""Work beside the window, in a thread of its own, where what it says is fetched and not sent: a thread that outlives
the window touches nothing of it."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from app.state.worker_messages import ErrorReport, make_error_report

QueuedCall = tuple[Callable[..., object], tuple[Any, ...]]


class BackgroundTask:
    """Runs `work(errand)` once it is started; that looks at `stop_event` and speaks by `post`."""

    def __init__(self, work: Callable[[BackgroundTask], object], name: str) -> None:
        self.stop_event = threading.Event()
        self._queue: SimpleQueue[QueuedCall] = SimpleQueue()
        self._thread = threading.Thread(target=work, args=(self,), name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def post(self, slot: Callable[..., object], *values: Any) -> None:
        """Have `slot` called with these on the main thread, soon."""
        self._queue.put((slot, values))

    def deliver(self) -> bool:
        """Call what there is to be called; True when nothing will follow."""
        is_over = not self._thread.is_alive()
        try:
            while True:
                slot, values = self._queue.get_nowait()
                slot(*values)
        except Empty:
            return is_over

    def stop_and_wait(self, seconds: float) -> None:
        """Ask it to stop, and wait for that, but not for ever."""
        self.stop_event.set()
        self._thread.join(seconds)


def error_report(error: Exception) -> ErrorReport:
    """What has ended an errand, in words; the details say where."""
    return make_error_report(error, "".join(traceback.format_exception(error)))
