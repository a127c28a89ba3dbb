"""Models of the hub, on the main thread: fetched, checked and deleted beside the window. It outlives the dialog that
shows it, and a change of language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from app.session.background_task import BackgroundTask, error_report
from app.session.download_statuses import DownloadStatuses
from app.session.hub_search import HubSearch
from app.session.task_manager import TaskManager
from app.state.hub_models import DownloadStatus
from app.state.worker_messages import ErrorReport
from core import catalog
from core.errors import DownloadStoppedError

_SCAN = "?shelf"
"""The name of an errand that no model can have."""


class Downloads(QObject):
    """`arrived(ModelEntry)` and `deleted(name)`: what can be chosen has changed; `ended(name, ErrorReport or None)`: a
    download is over. What a download has fetched by the window's end is kept."""

    arrived = Signal(object)
    deleted = Signal(str)
    ended = Signal(str, object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = TaskManager(self)
        self.hub = HubSearch(self._tasks, self)
        self.statuses = DownloadStatuses(self)
        self._next_actions: dict[str, Callable[[str], None]] = {}
        self._tasks.ended.connect(self._run_next_action)

    def status(self, name: str) -> DownloadStatus:
        """How that model stands."""
        return self.statuses.get(name)

    def scan_disk(self) -> None:
        """Find out what is there, whole or not; `statuses.listed` follows."""

        moment = self.statuses.revision

        def work(errand: BackgroundTask) -> None:
            whole = [(entry.name, entry.bytes) for entry in catalog.hub_cached() if entry.problem is None]
            errand.post(self.statuses.apply_scan, moment, whole, catalog.unfinished())

        self._tasks.start(_SCAN, work)

    def fetch(self, name: str, allow_pickle: bool = False) -> None:
        """Download a model, or go on with it; files that a check found damaged are fetched again."""
        status = self.status(name)
        if status.is_busy:
            return
        damaged = status.damaged or ()

        def work(errand: BackgroundTask) -> None:
            catalog.download(
                name,
                lambda now: errand.post(self.statuses.update_progress, name, now),
                stop=errand.stop_event,
                allow_pickle=allow_pickle,
                anew=damaged,
            )
            errand.post(self._on_complete, name, catalog.hub_entry(name))

        self._start_task(name, work)
        self.statuses.set_status(name, replace(status, status="fetching", error=None, damaged=None, progress=None))

    def verify(self, name: str) -> None:
        """Read all of it and hold it against its digests."""

        def work(errand: BackgroundTask) -> None:
            told = self.statuses.update_progress
            damaged = catalog.verify(name, lambda now: errand.post(told, name, now), stop=errand.stop_event)
            errand.post(self.statuses.finish_check, name, damaged)

        self._start_task(name, work)
        self.statuses.set_status(name, replace(self.status(name), status="checking", error=None, damaged=None))

    def stop(self, name: str) -> None:
        """Pause what is done for that model; a check ends without a result."""
        if self._tasks.is_running(name):
            self._tasks.stop(name)
            if self.status(name).status == "fetching":
                self.statuses.set_status(name, replace(self.status(name), status="stopping"))

    def discard(self, name: str) -> None:
        """Stop fetching it, and delete what has come."""
        self._next_actions[name] = self._discard
        if self._tasks.is_running(name):
            self.stop(name)
        else:
            self._run_next_action(name)

    def delete(self, name: str) -> None:
        """Delete a whole model from the disk."""

        def work(errand: BackgroundTask) -> None:
            catalog.delete(name)
            errand.post(self._on_deleted, name)

        self._start_task(name, work)

    @Slot()
    def stop_all(self) -> None:
        """Stop everything; what has come is kept, and can be gone on with."""
        self._tasks.stop_all()

    def _discard(self, name: str) -> None:
        def work(errand: BackgroundTask) -> None:
            catalog.discard(name)
            errand.post(self.statuses.remove, name)

        self._start_task(name, work)

    def _start_task(self, name: str, work: Callable[[BackgroundTask], None]) -> None:
        """An errand for one model, whose every failure is told."""

        def guarded(errand: BackgroundTask) -> None:
            try:
                work(errand)
            except DownloadStoppedError:
                errand.post(self.statuses.mark_stopped, name)
            except Exception as error:
                errand.post(self._on_failed, name, error_report(error))

        self._tasks.start(name, guarded)

    @Slot(str)
    def _run_next_action(self, name: str) -> None:
        """What was to be done once an errand is over."""
        if (then := self._next_actions.pop(name, None)) is not None:
            then(name)

    def _on_complete(self, name: str, entry: catalog.ModelEntry | None) -> None:
        total = self.status(name).total
        self.statuses.set_status(name, DownloadStatus("whole", total, total))
        if entry is not None:
            self.arrived.emit(entry)
        self.ended.emit(name, None)

    def _on_failed(self, name: str, error: ErrorReport) -> None:
        if not self.statuses.mark_failed(name, error):
            self.ended.emit(name, error)

    def _on_deleted(self, name: str) -> None:
        self.statuses.remove(name)
        self.deleted.emit(name)
