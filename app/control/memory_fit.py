"""Says whether the run that is set fits into memory: before anything is loaded, and whenever a setting changes."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.control.requests import RequestBuilder
from app.panels.setup_panel import SetupPanel
from app.session.mailbox import Answer
from app.session.session import Session
from app.state.worker_messages import MemoryEstimate, RunRequest

DELAY_MS = 300
"""After the last change; longer than the loading of a chosen model waits, which tells its shape for nothing."""
FIRST_MS = 1500
"""After the window was made: by then it has been painted."""


class MemoryFitController(QObject):
    """Asks the worker to reckon, one question at a time, and shows the answer at the foot of the setup panel.

    `runSizeEstimated(tokens, rows)` is the size of the run that was reckoned; `throughputEstimated` how quick it is, where layers are read
    from the disk, else nothing.
    """

    runSizeEstimated = Signal(int, int)
    throughputEstimated = Signal(str)

    def __init__(self, session: Session, panel: SetupPanel, requests: RequestBuilder) -> None:
        super().__init__(panel)
        self._session, self._panel, self._requests = session, panel, requests
        self._is_pending = self._is_stale = self._is_paused = False
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self._request_estimate)
        session.modelReady.connect(self._resume)
        for signal in (session.modelReady, session.finished, session.measuringChanged):
            signal.connect(self.schedule)
        session.answered.connect(self._on_answer)
        self._timer.start(FIRST_MS)

    @Slot()
    def schedule(self) -> None:
        """Reckon once the hand rests."""
        self._timer.start(DELAY_MS)

    def pause(self) -> None:
        """Reckon nothing until a model is loaded: it takes the libraries that a recorded run does without."""
        self._is_paused = True

    @Slot()
    def _resume(self) -> None:
        self._is_paused = False

    @Slot()
    def stop(self) -> None:
        """Ask nothing any more."""
        self._timer.stop()

    @Slot()
    def _request_estimate(self) -> None:
        if self._is_pending or self._session.busy:
            self._is_stale = True  # the end of a run asks again, and so does the answer
            return
        request = self._requests.request(seed=0)
        if self._is_paused or not self._panel.window().isVisible() or not request.model:
            return
        self._is_pending, self._is_stale = True, False
        self._session.request(request)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if not isinstance(answer.request, RunRequest):
            return
        self._is_pending = False
        fit = answer.result
        if self._is_stale:
            self.schedule()
        elif isinstance(fit, MemoryEstimate):
            self._panel.show_memory_estimate(fit.summary, fit.advice, fit.speed)
            self.throughputEstimated.emit(fit.speed)
            self.runSizeEstimated.emit(fit.tokens, fit.rows)
        else:
            self._panel.show_memory_estimate("", "")
