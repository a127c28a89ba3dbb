"""Models of the hub, on the main thread: fetched, checked and deleted beside the window. It outlives the dialog that
shows it, and a change of language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from app.session.background_task import BackgroundTask, report_of
from app.session.download_statuses import DownloadStatuses
from app.session.hub_search import HubSearch
from app.session.task_manager import TaskManager
from app.state.hub_models import DownloadStatus
from app.state.worker_messages import ErrorReport
from core import catalog
from core.errors import DownloadStoppedError

_SHELF = "?shelf"
"""The name of an errand that no model can have."""


class Downloads(QObject):
    """`arrived(ModelEntry)` and `deleted(name)`: what can be chosen has changed; `ended(name, ErrorReport or None)`: a
    download is over. What a download has fetched by the window's end is kept."""

    arrived = Signal(object)
    deleted = Signal(str)
    ended = Signal(str, object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._errands = TaskManager(self)
        self.hub = HubSearch(self._errands, self)
        self.standings = DownloadStatuses(self)
        self._after: dict[str, Callable[[str], None]] = {}
        self._errands.ended.connect(self._go_on)

    def standing(self, name: str) -> DownloadStatus:
        """How that model stands."""
        return self.standings.of(name)

    def look_at_disk(self) -> None:
        """Find out what is there, whole or not; `standings.listed` follows."""

        moment = self.standings.moment

        def work(errand: BackgroundTask) -> None:
            whole = [(entry.name, entry.bytes) for entry in catalog.hub_cached() if entry.problem is None]
            errand.tell(self.standings.on_disk, moment, whole, catalog.unfinished())

        self._errands.send(_SHELF, work)

    def fetch(self, name: str, allow_pickle: bool = False) -> None:
        """Download a model, or go on with it; files that a check found damaged are fetched again."""
        standing = self.standing(name)
        if standing.is_busy:
            return
        anew = standing.damaged or ()

        def work(errand: BackgroundTask) -> None:
            catalog.download(
                name,
                lambda now: errand.tell(self.standings.progressed, name, now),
                stop=errand.stop,
                allow_pickle=allow_pickle,
                anew=anew,
            )
            errand.tell(self._on_whole, name, catalog.hub_entry(name))

        self._send(name, work)
        self.standings.stand(name, replace(standing, status="fetching", error=None, damaged=None, progress=None))

    def verify(self, name: str) -> None:
        """Read all of it and hold it against its digests."""

        def work(errand: BackgroundTask) -> None:
            told = self.standings.progressed
            damaged = catalog.verify(name, lambda now: errand.tell(told, name, now), stop=errand.stop)
            errand.tell(self.standings.checked, name, damaged)

        self._send(name, work)
        self.standings.stand(name, replace(self.standing(name), status="checking", error=None, damaged=None))

    def stop(self, name: str) -> None:
        """Pause what is done for that model; a check ends without a result."""
        if self._errands.is_under_way(name):
            self._errands.stop(name)
            if self.standing(name).status == "fetching":
                self.standings.stand(name, replace(self.standing(name), status="stopping"))

    def discard(self, name: str) -> None:
        """Stop fetching it, and delete what has come."""
        self._after[name] = self._discard
        if self._errands.is_under_way(name):
            self.stop(name)
        else:
            self._go_on(name)

    def delete(self, name: str) -> None:
        """Delete a whole model from the disk."""

        def work(errand: BackgroundTask) -> None:
            catalog.delete(name)
            errand.tell(self._on_deleted, name)

        self._send(name, work)

    @Slot()
    def end(self) -> None:
        """Stop everything; what has come is kept, and can be gone on with."""
        self._errands.end()

    def _discard(self, name: str) -> None:
        def work(errand: BackgroundTask) -> None:
            catalog.discard(name)
            errand.tell(self.standings.forget, name)

        self._send(name, work)

    def _send(self, name: str, work: Callable[[BackgroundTask], None]) -> None:
        """An errand for one model, whose every failure is told."""

        def guarded(errand: BackgroundTask) -> None:
            try:
                work(errand)
            except DownloadStoppedError:
                errand.tell(self.standings.stopped, name)
            except Exception as error:
                errand.tell(self._on_failed, name, report_of(error))

        self._errands.send(name, guarded)

    @Slot(str)
    def _go_on(self, name: str) -> None:
        """What was to be done once an errand is over."""
        if (then := self._after.pop(name, None)) is not None:
            then(name)

    def _on_whole(self, name: str, entry: catalog.ModelEntry | None) -> None:
        total = self.standing(name).total
        self.standings.stand(name, DownloadStatus("whole", total, total))
        if entry is not None:
            self.arrived.emit(entry)
        self.ended.emit(name, None)

    def _on_failed(self, name: str, error: ErrorReport) -> None:
        if not self.standings.failed(name, error):
            self.ended.emit(name, error)

    def _on_deleted(self, name: str) -> None:
        self.standings.forget(name)
        self.deleted.emit(name)
