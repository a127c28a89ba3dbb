"""The model that the worker holds ready, as far as the window has been told."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.session.mailbox import ModelLoaded
from app.state.run import Run
from app.state.worker_messages import LoadRequest, ModelInfo


class HeldModel(QObject):
    """`loading(name)` and `ready(ModelInfo)` once for each model, and `ready` again where it is told otherwise, as in
    another language; `failed(ErrorReport)` where no run tells that.

    Between `step_aside` and `return_to` models come and go for runs that are not shown, and nobody is told.
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
        self._asked = 0
        self._run: Run | None = None
        self._is_aside = False
        self._left: LoadRequest | None = None

    @property
    def request(self) -> LoadRequest | None:
        """What was asked for to get it; None while it is not there."""
        return self._request

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

    def step_aside(self) -> None:
        """Runs that are not shown may need other models; the present one is to come back."""
        self._is_aside, self._left = True, self._request

    def return_to(self) -> LoadRequest | None:
        """No more such runs come: the model to be loaded again; None when it is there."""
        self._is_aside = False
        return self._left if self._request is None else None

    @Slot(object)
    def on_loading(self, request: LoadRequest) -> None:
        """The worker begins to load, or finds that it holds that model already."""
        if request != self._request:
            self._request = None
            self.is_loading = True
            if not self._is_aside:
                self.loading.emit(request.model)

    @Slot(object)
    def on_loaded(self, answer: ModelLoaded) -> None:
        """The worker holds it, or could not."""
        self.is_loading = False
        if self._is_aside and answer.for_run:
            self._request = self._left if answer.info is not None and answer.request == self._left else None
            return
        if not answer.for_run:
            self._asked -= 1
            self._left = answer.request if answer.info is not None else self._left
        if answer.info is not None and (answer.request != self._request or answer.info != self.info):
            self._request, self.info = answer.request, answer.info
            if self._run is not None:
                self.await_for(self._run)
            self.ready.emit(answer.info)
        elif answer.error is not None and not answer.for_run:
            self.failed.emit(answer.error)
