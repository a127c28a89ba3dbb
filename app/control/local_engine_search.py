"""Search for engines that run on this computer, in the background and only on request."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.session.background_tasks import BackgroundTask, TaskManager
from decodescope.core import remote

_SEARCH = "search"


class LocalEngineSearch(QObject):
    """`found(tuple of LocalEngine)` is emitted once after each `start`."""

    found = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = TaskManager(self)

    @property
    def is_searching(self) -> bool:
        """Whether a search is in progress."""
        return self._tasks.is_running(_SEARCH)

    def start(self) -> None:
        """Start a search, unless one is in progress."""
        if self.is_searching:
            return

        def work(task: BackgroundTask) -> None:
            task.post(self.found.emit, remote.find_local_engines(task.stop_event))

        self._tasks.start(_SEARCH, work)

    @Slot()
    def stop(self) -> None:
        """Stop the search without a result."""
        self._tasks.stop_all()
