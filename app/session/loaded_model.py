"""The model that the worker holds ready, as far as the window has been told."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.session.mailbox import ModelLoaded
from app.state.run import Run
from app.state.worker_messages import LoadRequest, ModelInfo


class ModelTracker(QObject):
    """`loading(name)` and `ready(ModelInfo)` once for each model, and `ready` again where it is told otherwise, as in
    another language; `failed(ErrorReport)` where no run tells that.

    Between `begin_side_runs` and `end_side_runs` models come and go for runs that are not shown, and nobody is told.
    """

    loading = Signal(str)
    ready = Signal(object)
    failed = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.info: ModelInfo | None = None
        """The model held ready; None before the first has been loaded."""
        self.is_loading = False
        self._request: LoadRequest | None = None
        self._pending_count = 0
        self._run: Run | None = None
        self._has_side_runs = False
        self._model_before: LoadRequest | None = None

    @property
    def request(self) -> LoadRequest | None:
        """What was asked for to get it; None while it is not there."""
        return self._request

    @property
    def is_pending(self) -> bool:
        """Whether the window has asked for a model that is not there yet."""
        return self._pending_count > 0

    def track_run(self, run: Run) -> None:
        """Let `run` know, now and later, whether its model is there."""
        self._run = run
        run.is_loading = run.request.load != self._request

    def count_request(self) -> None:
        """The window asks for a model."""
        self._pending_count += 1

    def begin_side_runs(self) -> None:
        """Runs that are not shown may need other models; the present one is to come back."""
        self._has_side_runs, self._model_before = True, self._request

    def end_side_runs(self) -> LoadRequest | None:
        """No more such runs come: the model to be loaded again; None when it is there."""
        self._has_side_runs = False
        return self._model_before if self._request is None else None

    @Slot(object)
    def on_loading(self, request: LoadRequest) -> None:
        """The worker begins to load, or finds that it holds that model already."""
        if request != self._request:
            self._request = None
            self.is_loading = True
            if not self._has_side_runs:
                self.loading.emit(request.model)

    @Slot(object)
    def on_loaded(self, answer: ModelLoaded) -> None:
        """The worker holds it, or could not."""
        self.is_loading = False
        if self._has_side_runs and answer.for_run:
            self._request = (
                self._model_before if answer.info is not None and answer.request == self._model_before else None
            )
            return
        if not answer.for_run:
            self._pending_count -= 1
            self._model_before = answer.request if answer.info is not None else self._model_before
        if answer.info is not None and (answer.request != self._request or answer.info != self.info):
            self._request, self.info = answer.request, answer.info
            if self._run is not None:
                self.track_run(self._run)
            self.ready.emit(answer.info)
        elif answer.error is not None and not answer.for_run:
            self.failed.emit(answer.error)
