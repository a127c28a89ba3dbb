"""How every model of the hub stands, as far as it is known: on the disk, on its way, stopped, damaged."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.state.hub_models import DownloadStatus
from app.state.worker_messages import ErrorReport
from core import catalog


class DownloadStatuses(QObject):
    """`changed(name)`: that model stands otherwise; `listed`: others are on the disk."""

    changed = Signal(str)
    listed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._statuses: dict[str, DownloadStatus] = {}
        self._revisions: dict[str, int] = {}
        self.revision = 0
        """How often anything has been told: what was read from the disk at a moment knows nothing of later ones."""

    @property
    def names(self) -> list[str]:
        """Models that are on the disk, whole or not, or on their way."""
        return [name for name, status in self._statuses.items() if status.status != "none"]

    def get(self, name: str) -> DownloadStatus:
        """How that model stands."""
        return self._statuses.get(name, DownloadStatus())

    def set_status(self, name: str, status: DownloadStatus) -> None:
        """It stands so from now on."""
        self.revision += 1
        self._statuses[name], self._revisions[name] = status, self.revision
        self.changed.emit(name)

    def apply_scan(
        self, revision: int, complete: list[tuple[str, int]], unfinished: tuple[catalog.Unfinished, ...]
    ) -> None:
        """These were there, with their bytes, when one began to look; what was told since is known better already."""
        scanned = {name: DownloadStatus("whole", size, size) for name, size in complete}
        scanned |= {one.name: DownloadStatus("paused", one.done, one.total) for one in unfinished}
        for name, status in scanned.items():
            known = self.get(name)
            is_old = self._revisions.get(name, 0) > revision
            if not (known.is_busy or is_old) and (known.status != status.status or known.done != status.done):
                self._statuses[name] = replace(status, error=known.error if known.status == "failed" else None)
        self.listed.emit()

    def update_progress(self, name: str, progress: catalog.Progress) -> None:
        """It has come so far."""
        status = self.get(name)
        if status.is_busy:
            self.set_status(name, replace(status, done=progress.done, total=progress.total, progress=progress))

    def finish_check(self, name: str, damaged: tuple[str, ...]) -> None:
        """It was held against its digests."""
        self.set_status(name, replace(self.get(name), status="whole", progress=None, damaged=damaged))

    def mark_stopped(self, name: str) -> None:
        """Nothing more is done for it; a check ends without a result."""
        status = self.get(name)
        was_checking = status.status == "checking"
        self.set_status(name, replace(status, status="whole" if was_checking else "paused", progress=None))

    def mark_failed(self, name: str, error: ErrorReport) -> bool:
        """What was done for it has failed; whether the model is whole all the same."""
        status = self.get(name)
        is_complete = status.status in ("checking", "whole")
        self.set_status(name, replace(status, status="whole" if is_complete else "failed", progress=None, error=error))
        return is_complete

    def remove(self, name: str) -> None:
        """Nothing of it is left."""
        self.set_status(name, DownloadStatus())
        self.listed.emit()
