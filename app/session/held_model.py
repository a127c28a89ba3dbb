"""The model that the worker holds ready, as far as the window has been told."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.session.mailbox import Loaded
from app.state.requests import LoadRequest, ModelInfo
from app.state.run import Run


class HeldModel(QObject):
    """`loading(name)` and `ready(ModelInfo)` once for each model; `failed(ErrorReport)` where no run tells that."""

    loading = Signal(str)
    ready = Signal(object)
    failed = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.info: ModelInfo | None = None
        """The model held ready; None before the first has been loaded."""
        self.is_loading = False
        self._request: LoadRequest | None = None
        self._asked = 0
        self._run: Run | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether the window has asked for a model that is not there yet."""
        return self._asked > 0

    def await_for(self, run: Run) -> None:
        """Let `run` know, now and later, whether its model is there."""
        self._run = run
        run.is_loading = run.request.load != self._request

    def ask(self) -> None:
        """The window asks for a model."""
        self._asked += 1

    @Slot(object)
    def on_loading(self, request: LoadRequest) -> None:
        """The worker begins to load, or finds that it holds that model already."""
        if request != self._request:
            self._request = None
            self.is_loading = True
            self.loading.emit(request.model)

    @Slot(object)
    def on_loaded(self, answer: Loaded) -> None:
        """The worker holds it, or could not."""
        self.is_loading = False
        if not answer.for_run:
            self._asked -= 1
        if answer.info is not None and answer.request != self._request:
            self._request, self.info = answer.request, answer.info
            if self._run is not None:
                self.await_for(self._run)
            self.ready.emit(answer.info)
        elif answer.error is not None and not answer.for_run:
            self.failed.emit(answer.error)
