"""A search on the hub: what it found, judged one after the other, or why it found nothing."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.session.background_task import BackgroundTask, error_report
from app.session.task_manager import TaskManager
from app.state.worker_messages import ErrorReport
from core import catalog

_SEARCH = "?search"
"""The errand's name, which no model can have."""


class HubSearch(QObject):
    """`listed`: what is found is other than before, or all there is; `judged(name)`: more is known of that model."""

    listed = Signal()
    judged = Signal(str)

    def __init__(self, tasks: TaskManager, parent: QObject) -> None:
        super().__init__(parent)
        self.query: str | None = None
        """What was searched for last; None before the first search."""
        self.found: dict[str, catalog.HubModel] = {}
        """By name, in the order of the hub."""
        self.error: ErrorReport | None = None
        """Why nothing was found."""
        self._tasks = tasks
        self._task: BackgroundTask | None = None
        tasks.ended.connect(self._on_ended)

    @property
    def is_searching(self) -> bool:
        """Whether a search is under way."""
        return self._tasks.is_running(_SEARCH)

    @Slot(str)
    def search(self, text: str) -> None:
        """Ask the hub; what it finds is listed at once, and judged one after the other."""
        self.query, self.error, self.found = text, None, {}
        self._tasks.stop(_SEARCH)

        def work(errand: BackgroundTask) -> None:
            try:
                models = catalog.find(text)
                errand.post(self._on_found, errand, models)
                for model in models:
                    if not errand.stop_event.is_set():
                        errand.post(self._on_judged, errand, catalog.judge(model))
            except Exception as error:
                errand.post(self._on_error, errand, error_report(error))

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
