"""Background task in its own thread. Its calls are polled by the main thread, so a thread that outlives the window
touches no Qt object.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.state.worker_messages import ErrorReport, make_error_report

QueuedCall = tuple[Callable[..., object], tuple[Any, ...]]


class BackgroundTask:
    """Runs `work(task)` in a thread; `work` checks `stop_event` and posts calls with `post`."""

    def __init__(self, work: Callable[[BackgroundTask], object], name: str) -> None:
        self.stop_event = threading.Event()
        self._queue: SimpleQueue[QueuedCall] = SimpleQueue()
        self._thread = threading.Thread(target=work, args=(self,), name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def post(self, slot: Callable[..., object], *values: Any) -> None:
        """Call `slot` with these values on the main thread, soon."""
        self._queue.put((slot, values))

    def deliver(self) -> bool:
        """Make the posted calls; return True if no more will follow."""
        is_over = not self._thread.is_alive()
        try:
            while True:
                slot, values = self._queue.get_nowait()
                slot(*values)
        except Empty:
            return is_over

    def stop_and_wait(self, seconds: float) -> None:
        """Request a stop and wait for the thread, up to `seconds`."""
        self.stop_event.set()
        self._thread.join(seconds)


def error_report(error: Exception) -> ErrorReport:
    """Return an error report with the traceback as details."""
    return make_error_report(error, "".join(traceback.format_exception(error)))


POLL_MS = 80
MAX_WAIT_SECONDS = 2.0
"""Seconds to wait for each task when the window closes."""


class TaskManager(QObject):
    """Runs tasks and polls their calls. `ended(name)`: a task has ended and all its calls were made."""

    ended = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks: dict[str, BackgroundTask] = {}
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._poll)

    def is_running(self, name: str) -> bool:
        """Return whether a task called `name` is running."""
        return name in self._tasks

    def start(self, name: str, work: Callable[[BackgroundTask], None]) -> BackgroundTask:
        """Start a task; an earlier one with the same name is no longer tracked."""
        task = self._tasks[name] = BackgroundTask(work, name)
        task.start()
        self._timer.start()
        return task

    def stop(self, name: str) -> None:
        """Request a task to stop, if there is one."""
        if name in self._tasks:
            self._tasks[name].stop_event.set()

    def stop_all(self) -> None:
        """Stop all tasks and wait briefly for each."""
        for task in self._tasks.values():
            task.stop_event.set()
        for task in self._tasks.values():
            task.stop_and_wait(MAX_WAIT_SECONDS)
        self._tasks.clear()
        self._timer.stop()

    @Slot()
    def _poll(self) -> None:
        for name, task in list(self._tasks.items()):
            if task.deliver() and self._tasks.get(name) is task:
                del self._tasks[name]
                self.ended.emit(name)
        if not self._tasks:
            self._timer.stop()
