"""Hub downloads: fetches, verifies and deletes models in background threads. Independent of the dialog and of a
language change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.session.background_tasks import BackgroundTask, TaskManager, error_report
from decodescope.app.state.worker_messages import DownloadStatus, ErrorReport
from decodescope.core import catalog
from decodescope.core.errors import DownloadStoppedError


class DownloadStatuses(QObject):
    """Statuses by model name. `changed(name)`: a status changed; `listed`: the set of models on the disk changed."""

    changed = Signal(str)
    listed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._statuses: dict[str, DownloadStatus] = {}
        self._revisions: dict[str, int] = {}
        self.revision = 0
        """Number of changes so far; a disk scan must not overwrite later changes."""

    @property
    def names(self) -> list[str]:
        """Names of the models on the disk, complete or partial, or in progress."""
        return [name for name, status in self._statuses.items() if status.status != "none"]

    def get(self, name: str) -> DownloadStatus:
        """Return the status of a model."""
        return self._statuses.get(name, DownloadStatus())

    def set_status(self, name: str, status: DownloadStatus) -> None:
        """Set the status of a model."""
        self.revision += 1
        self._statuses[name], self._revisions[name] = status, self.revision
        self.changed.emit(name)

    def apply_scan(
        self, revision: int, complete: list[tuple[str, int]], unfinished: tuple[catalog.UnfinishedDownload, ...]
    ) -> None:
        """Update the statuses from a disk scan started at `revision`; newer statuses are kept."""
        scanned = {name: DownloadStatus("whole", size, size) for name, size in complete}
        scanned |= {one.name: DownloadStatus("paused", one.done, one.total) for one in unfinished}
        for name, status in scanned.items():
            known = self.get(name)
            is_old = self._revisions.get(name, 0) > revision
            if not (known.is_busy or is_old) and (known.status != status.status or known.done != status.done):
                self._statuses[name] = replace(status, error=known.error if known.status == "failed" else None)
        self.listed.emit()

    def update_progress(self, name: str, progress: catalog.DownloadProgress) -> None:
        """Update the progress of a download or check."""
        status = self.get(name)
        if status.is_busy:
            self.set_status(name, replace(status, done=progress.done, total=progress.total, progress=progress))

    def finish_check(self, name: str, damaged: tuple[str, ...]) -> None:
        """Store the result of a check against the digests."""
        self.set_status(name, replace(self.get(name), status="whole", progress=None, damaged=damaged))

    def mark_stopped(self, name: str) -> None:
        """Set the status after a stop; a stopped check has no result."""
        status = self.get(name)
        was_checking = status.status == "checking"
        self.set_status(name, replace(status, status="whole" if was_checking else "paused", progress=None))

    def mark_failed(self, name: str, error: ErrorReport) -> bool:
        """Set the status after a failure; return whether the model is complete anyway."""
        status = self.get(name)
        is_complete = status.status in ("checking", "whole")
        self.set_status(name, replace(status, status="whole" if is_complete else "failed", progress=None, error=error))
        return is_complete

    def remove(self, name: str) -> None:
        """Set the status of a deleted model."""
        self.set_status(name, DownloadStatus())
        self.listed.emit()


_SEARCH = "?search"
"""Task name that no model can have."""


class HubSearch(QObject):
    """Searches the Hub. `listed`: the results changed or are complete; `judged(name)`: details of a model were
    added.
    """

    listed = Signal()
    judged = Signal(str)

    def __init__(self, tasks: TaskManager, parent: QObject) -> None:
        super().__init__(parent)
        self.query: str | None = None
        """The last query; None before the first search."""
        self.found: dict[str, catalog.HubModel] = {}
        """Results by name, in the order of the Hub."""
        self.error: ErrorReport | None = None
        """Why the search failed."""
        self._tasks = tasks
        self._task: BackgroundTask | None = None
        tasks.ended.connect(self._on_ended)

    @property
    def is_searching(self) -> bool:
        """Whether a search is in progress."""
        return self._tasks.is_running(_SEARCH)

    @Slot(str)
    def search(self, text: str) -> None:
        """Search the Hub; results are listed at once and then checked one by one."""
        self.query, self.error, self.found = text, None, {}
        self._tasks.stop(_SEARCH)

        def work(task: BackgroundTask) -> None:
            try:
                models = catalog.find(text)
                task.post(self._on_found, task, models)
                for model in models:
                    if not task.stop_event.is_set():
                        task.post(self._on_judged, task, catalog.judge(model))
            except Exception as error:
                task.post(self._on_error, task, error_report(error))

        self._task = self._tasks.start(_SEARCH, work)
        self.listed.emit()

    @Slot(str)
    def _on_ended(self, name: str) -> None:
        if name == _SEARCH:
            self.listed.emit()

    def _on_found(self, task: BackgroundTask, models: tuple[catalog.HubModel, ...]) -> None:
        if self._task is task:
            self.found = {model.name: model for model in models}
            self.listed.emit()

    def _on_judged(self, task: BackgroundTask, model: catalog.HubModel) -> None:
        if self._task is task and model.name in self.found:
            self.found[model.name] = model
            self.judged.emit(model.name)

    def _on_error(self, task: BackgroundTask, error: ErrorReport) -> None:
        if self._task is task:
            self.error = error
            self.listed.emit()


_SCAN = "?scan"
"""Task name that no model can have."""


class Downloads(QObject):
    """Manages downloads. `arrived(ModelEntry)`, `deleted(name of the entry)`: the list of models changed; `ended(name,
    ErrorReport or None)`: a download ended. Partial downloads are kept when the window closes.
    """

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
        """Return the status of a model."""
        return self.statuses.get(name)

    def scan_disk(self) -> None:
        """Scan the disk for complete and partial models; `statuses.listed` follows."""

        moment = self.statuses.revision

        def work(task: BackgroundTask) -> None:
            whole = [(entry.name, entry.bytes) for entry in catalog.hub_cached() if entry.problem is None]
            whole += [(name, entry.bytes) for name, entry in catalog.hub_gguf() if entry.problem is None]
            task.post(self.statuses.apply_scan, moment, whole, catalog.unfinished())

        self._tasks.start(_SCAN, work)

    def fetch(self, name: str, allow_pickle: bool = False) -> None:
        """Start or resume a download; damaged files found by a check are fetched again."""
        status = self.status(name)
        if status.is_busy:
            return
        damaged = status.damaged or ()

        def work(task: BackgroundTask) -> None:
            catalog.download(
                name,
                lambda now: task.post(self.statuses.update_progress, name, now),
                stop=task.stop_event,
                allow_pickle=allow_pickle,
                again=damaged,
            )
            task.post(self._on_complete, name, catalog.hub_entry(name))

        self._start_task(name, work)
        self.statuses.set_status(name, replace(status, status="fetching", error=None, damaged=None, progress=None))

    def verify(self, name: str) -> None:
        """Verify all files against their digests."""

        def work(task: BackgroundTask) -> None:
            update_progress = self.statuses.update_progress
            damaged = catalog.verify(name, lambda now: task.post(update_progress, name, now), stop=task.stop_event)
            task.post(self.statuses.finish_check, name, damaged)

        self._start_task(name, work)
        self.statuses.set_status(name, replace(self.status(name), status="checking", error=None, damaged=None))

    def stop(self, name: str) -> None:
        """Pause the download, or stop the check without a result."""
        if self._tasks.is_running(name):
            self._tasks.stop(name)
            if self.status(name).status == "fetching":
                self.statuses.set_status(name, replace(self.status(name), status="stopping"))

    def discard(self, name: str) -> None:
        """Stop the download and delete its files."""
        self._next_actions[name] = self._discard
        if self._tasks.is_running(name):
            self.stop(name)
        else:
            self._run_next_action(name)

    def delete(self, name: str) -> None:
        """Delete a complete model from the disk."""

        def work(task: BackgroundTask) -> None:
            entry = catalog.hub_entry(name)
            catalog.delete(name)
            task.post(self._on_deleted, name, entry.name if entry is not None else name)

        self._start_task(name, work)

    @Slot()
    def stop_all(self) -> None:
        """Stop everything; partial downloads are kept and can be resumed."""
        self._tasks.stop_all()

    def _discard(self, name: str) -> None:
        def work(task: BackgroundTask) -> None:
            catalog.discard(name)
            task.post(self.statuses.remove, name)

        self._start_task(name, work)

    def _start_task(self, name: str, work: Callable[[BackgroundTask], None]) -> None:
        """Start a task for one model and report all failures."""

        def guarded(task: BackgroundTask) -> None:
            try:
                work(task)
            except DownloadStoppedError:
                task.post(self.statuses.mark_stopped, name)
            except Exception as error:
                task.post(self._on_failed, name, error_report(error))

        self._tasks.start(name, guarded)

    @Slot(str)
    def _run_next_action(self, name: str) -> None:
        """Run the action that was waiting for the end of a task."""
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

    def _on_deleted(self, name: str, entry_name: str) -> None:
        self.statuses.remove(name)
        self.deleted.emit(entry_name)
