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
        self._known: dict[str, DownloadStatus] = {}
        self._moved: dict[str, int] = {}
        self.moment = 0
        """How often anything has been told: what was read from the disk at a moment knows nothing of later ones."""

    @property
    def kept(self) -> list[str]:
        """Models that are on the disk, whole or not, or on their way."""
        return [name for name, standing in self._known.items() if standing.status != "none"]

    def of(self, name: str) -> DownloadStatus:
        """How that model stands."""
        return self._known.get(name, DownloadStatus())

    def stand(self, name: str, standing: DownloadStatus) -> None:
        """It stands so from now on."""
        self.moment += 1
        self._known[name], self._moved[name] = standing, self.moment
        self.changed.emit(name)

    def on_disk(self, moment: int, whole: list[tuple[str, int]], unfinished: tuple[catalog.Unfinished, ...]) -> None:
        """These were there, with their bytes, when one began to look; what was told since is known better already."""
        found = {name: DownloadStatus("whole", size, size) for name, size in whole}
        found |= {one.name: DownloadStatus("paused", one.done, one.total) for one in unfinished}
        for name, standing in found.items():
            kept = self.of(name)
            is_old = self._moved.get(name, 0) > moment
            if not (kept.is_busy or is_old) and (kept.status != standing.status or kept.done != standing.done):
                self._known[name] = replace(standing, error=kept.error if kept.status == "failed" else None)
        self.listed.emit()

    def progressed(self, name: str, now: catalog.Progress) -> None:
        """It has come so far."""
        standing = self.of(name)
        if standing.is_busy:
            self.stand(name, replace(standing, done=now.done, total=now.total, progress=now))

    def checked(self, name: str, damaged: tuple[str, ...]) -> None:
        """It was held against its digests."""
        self.stand(name, replace(self.of(name), status="whole", progress=None, damaged=damaged))

    def stopped(self, name: str) -> None:
        """Nothing more is done for it; a check ends without a result."""
        standing = self.of(name)
        is_kept = standing.status == "checking"
        self.stand(name, replace(standing, status="whole" if is_kept else "paused", progress=None))

    def failed(self, name: str, error: ErrorReport) -> bool:
        """What was done for it has failed; whether the model is whole all the same."""
        standing = self.of(name)
        is_kept = standing.status in ("checking", "whole")
        self.stand(name, replace(standing, status="whole" if is_kept else "failed", progress=None, error=error))
        return is_kept

    def forget(self, name: str) -> None:
        """Nothing of it is left."""
        self.stand(name, DownloadStatus())
        self.listed.emit()
