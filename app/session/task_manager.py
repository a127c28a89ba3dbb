"""Errands under way, each by a name, looked after on the main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.session.background_task import BackgroundTask

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
