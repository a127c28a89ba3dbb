"""Memory estimate of the current settings: shown before a model is loaded and updated after each change."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.control.requests import RequestBuilder
from decodescope.app.panels.setup_panel import SetupPanel
from decodescope.app.session.queries.base import Answer, Query, Report
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core.common.lightweight_dataclass import plain

if TYPE_CHECKING:
    from decodescope.app.session.local_models import LocalModels

DELAY_MS = 300
"""Delay after the last change; longer than the delay before a selected model is loaded, since the loaded model provides
its shape.
"""
FIRST_MS = 1500
"""Delay after the window was created, so that it is painted first."""


class MemoryEstimate(NamedTuple):
    """Memory requirement of a run, as text and as numbers."""

    summary: str
    advice: str
    """Advice on how to make it fit; empty if it fits."""
    tokens: int
    """Tokens of the longest sequence."""
    rows: int
    """Sequences, beams or candidates in parallel."""
    needed_bytes: int = 0
    """Total bytes."""
    cache: int = 0
    """Cache bytes."""
    speed: str = ""
    """Predicted speed if layers are read from disk."""


@plain(frozen=True)
class MemoryQuery(Query):
    """Query for the memory of a run; None if it runs on another machine."""

    replaces_earlier = True
    is_reproducible = False

    request: RunRequest

    def run(self, models: LocalModels, report: Report) -> MemoryEstimate:
        """Estimate with the loaded models, or with blueprints of those not loaded. Raises DecodescopeError."""
        from decodescope import core
        from decodescope.app.session.worker_jobs import with_phrase_ids

        model, *drafters = models.models_or_blueprints(self.request)
        loaded_bytes = sum(known.weight_bytes for known in (model, *drafters) if models.is_loaded(known))
        estimate = core.estimate(model, with_phrase_ids(model, self.request), loaded_bytes, drafters=drafters)
        return MemoryEstimate(
            estimate.figures, estimate.advice, estimate.tokens, estimate.rows, estimate.needed, estimate.cache,
            models.throughput_text(self.load, model),
        )  # fmt: skip


class MemoryFitController(QObject):
    """Requests memory estimates from the worker, and shows the result at the bottom of the setup panel.

    `runSizeEstimated(tokens, rows)`: size of the estimated run; `throughputEstimated`: its predicted speed if layers
    are read from the disk, else empty.
    """

    runSizeEstimated = Signal(int, int)
    throughputEstimated = Signal(str)

    def __init__(self, session: Session, panel: SetupPanel, requests: RequestBuilder) -> None:
        super().__init__(panel)
        self._session, self._panel, self._requests = session, panel, requests
        self._query: MemoryQuery | None = None
        """The query for the latest settings."""
        self._is_paused = False
        self._timer = QTimer(self, singleShot=True, interval=DELAY_MS)
        self._timer.timeout.connect(self._request_estimate)
        session.modelReady.connect(self._resume)
        for signal in (session.modelReady, session.finished, session.measuringChanged):
            signal.connect(self.schedule)
        session.answered.connect(self._on_answer)
        self._timer.start(FIRST_MS)

    @Slot()
    def schedule(self) -> None:
        """Update the estimate shortly after the last change."""
        self._timer.start(DELAY_MS)

    def pause(self) -> None:
        """Do not estimate until a model is loaded, to avoid importing libraries that a recorded run does not need."""
        self._is_paused = True

    @Slot()
    def _resume(self) -> None:
        self._is_paused = False

    @Slot()
    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    @Slot()
    def _request_estimate(self) -> None:
        self._query = None
        if self._session.busy:
            return  # requested again at the end of the run
        request = self._requests.request(seed=0)
        if self._is_paused or not self._panel.window().isVisible() or not request.model:
            return
        self._query = MemoryQuery(request, load=request.load)
        self._session.request(self._query)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        if self._query is None or answer.query is not self._query:
            return
        fit = answer.result
        if isinstance(fit, MemoryEstimate):
            self._panel.show_memory_estimate(fit.summary, fit.advice, fit.speed)
            self.throughputEstimated.emit(fit.speed)
            self.runSizeEstimated.emit(fit.tokens, fit.rows)
        else:
            self._panel.show_memory_estimate("", "")
