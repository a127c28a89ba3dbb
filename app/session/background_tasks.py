"""Work beside the window, in a thread of its own, where what it says is fetched and not sent: a thread that outlives
the window touches nothing of it."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

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


POLL_MS = 80
MAX_WAIT_SECONDS = 2.0
"""Seconds that the window's end waits for each of them."""


class TaskManager(QObject):
    """`ended(name)`: that errand is over, and all that it had to tell is told."""

    ended = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks: dict[str, BackgroundTask] = {}
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._poll)

    def is_running(self, name: str) -> bool:
        """Whether there is an errand of that name."""
        return name in self._tasks

    def start(self, name: str, work: Callable[[BackgroundTask], None]) -> BackgroundTask:
        """Begin one; another of that name is no longer waited for."""
        task = self._tasks[name] = BackgroundTask(work, name)
        task.start()
        self._timer.start()
        return task

    def stop(self, name: str) -> None:
        """Ask that one to stop, where there is one."""
        if name in self._tasks:
            self._tasks[name].stop_event.set()

    def stop_all(self) -> None:
        """Stop all of them, and wait a little for each."""
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
