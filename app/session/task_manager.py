"""Errands under way, each by a name, looked after on the main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.session.background_task import BackgroundTask

LOOK_MS = 80
LONGEST_WAIT = 2.0
"""Seconds that the window's end waits for each of them."""


class TaskManager(QObject):
    """`ended(name)`: that errand is over, and all that it had to tell is told."""

    ended = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._errands: dict[str, BackgroundTask] = {}
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)

    def is_under_way(self, name: str) -> bool:
        """Whether there is an errand of that name."""
        return name in self._errands

    def send(self, name: str, work: Callable[[BackgroundTask], None]) -> BackgroundTask:
        """Begin one; another of that name is no longer waited for."""
        errand = self._errands[name] = BackgroundTask(work, name)
        errand.start()
        self._timer.start()
        return errand

    def stop(self, name: str) -> None:
        """Ask that one to stop, where there is one."""
        if name in self._errands:
            self._errands[name].stop.set()

    def end(self) -> None:
        """Stop all of them, and wait a little for each."""
        for errand in self._errands.values():
            errand.stop.set()
        for errand in self._errands.values():
            errand.end(LONGEST_WAIT)
        self._errands.clear()
        self._timer.stop()

    @Slot()
    def _look(self) -> None:
        for name, errand in list(self._errands.items()):
            if errand.deliver() and self._errands.get(name) is errand:
                del self._errands[name]
                self.ended.emit(name)
        if not self._errands:
            self._timer.stop()
