"""Cache of the media that the window shows, read in the background."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from decodescope.app.state.media import Medium

if TYPE_CHECKING:
    from decodescope.app.session.background_tasks import BackgroundTask, TaskManager


class MediaCache(QObject):
    """Reads each file once. `mediumRead(Medium)`: a file was read, successfully or not."""

    mediumRead = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._media: dict[str, Medium] = {}
        self._tasks: TaskManager | None = None

    def get(self, path: str) -> Medium:
        """Return what is known of a file now; start reading it if it is new."""
        if path not in self._media:
            self.reload(path)
        return self._media[path]

    def reload(self, path: str) -> Medium:
        """Read a file again, as it may have changed; return an empty entry until then."""
        name = Path(path).name or path
        self._media[path] = Medium(path, name)
        self._start_reading(path)
        return self._media[path]

    def close(self) -> None:
        """Wait briefly for pending reads."""
        if self._tasks is not None:
            self._tasks.stop_all()

    def _start_reading(self, path: str) -> None:
        from decodescope.app.session.background_tasks import TaskManager

        def work(task: BackgroundTask) -> None:
            from decodescope.app.features.media.session.media_reading import read_medium

            task.post(self._on_read, read_medium(path))

        if self._tasks is None:
            self._tasks = TaskManager(self)
        self._tasks.start(path, work)

    def _on_read(self, medium: Medium) -> None:
        self._media[medium.path] = medium
        self.mediumRead.emit(medium)
