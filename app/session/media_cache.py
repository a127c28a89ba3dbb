"""What is known of the sounds and pictures that the window shows, read beside it, each once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.state.media import Medium

if TYPE_CHECKING:
    from app.session.background_tasks import BackgroundTask, TaskManager


class MediaCache(QObject):
    """`mediumRead(Medium)`: that file has been read, well or not."""

    mediumRead = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._media: dict[str, Medium] = {}
        self._tasks: TaskManager | None = None

    def get(self, path: str) -> Medium:
        """What is known of it now; of a file that was never asked for nothing, and its reading begins."""
        if path not in self._media:
            self.reload(path)
        return self._media[path]

    def reload(self, path: str) -> Medium:
        """Look at the file anew: it may be another, or gone. What is known until then."""
        name = Path(path).name or path
        self._media[path] = Medium(path, name)
        self._start_reading(path)
        return self._media[path]

    def close(self) -> None:
        """Wait a little for what is being read."""
        if self._tasks is not None:
            self._tasks.stop_all()

    def _start_reading(self, path: str) -> None:
        from app.session.background_tasks import TaskManager

        def work(errand: BackgroundTask) -> None:
            from app.session.media_reading import read_medium

            errand.post(self._on_read, read_medium(path))

        if self._tasks is None:
            self._tasks = TaskManager(self)
        self._tasks.start(path, work)

    def _on_read(self, medium: Medium) -> None:
        self._media[medium.path] = medium
        self.mediumRead.emit(medium)
