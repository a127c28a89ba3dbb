"""The session: the one object on the main thread that everything in the window talks to."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace

import shiboken6
from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal, Slot

from app.session.engine import CoreEngine, Engine
from app.session.garbage import Collector
from app.session.worker import Ended, Job, Loaded, Worker
from app.state import outcomes
from app.state.requests import ErrorReport, LoadRequest, ModelInfo, Outcome, PrefixRequest, RunRequest
from app.state.run import Run

SHORTEST_BATCH, LONGEST_BATCH = 1 / 30, 1 / 10
"""Seconds between two batches; the first token goes out at once."""
DRAWING_SHARE = 0.07
"""Share of its time that this thread may draw while a run is under way: both threads need the interpreter's lock, so
what one of them uses the other cannot have."""


class Pace:
    """When the next batch is due: soon where drawing is quick, later where it takes much of this thread's time."""

    def __init__(self) -> None:
        self.interval = SHORTEST_BATCH
        self._last = (-math.inf, 0.0)

    def begin(self) -> None:
        """A run begins: its first batch is due at once. What drawing takes is known from the runs before."""
        self._last = (-math.inf, 0.0)

    def wait(self) -> float:
        """Seconds until the next batch is due; not above 0 when it is."""
        return self._last[0] + self.interval - time.monotonic()

    def delivered(self) -> None:
        """A batch goes out now; what this thread has computed since the last one was the drawing of that."""
        now = (time.monotonic(), time.thread_time())
        if self._last[0] > -math.inf:
            due = (now[1] - self._last[1]) / DRAWING_SHARE
            self.interval += (min(LONGEST_BATCH, max(SHORTEST_BATCH, due)) - self.interval) / 3
        self._last = now


class Session(QObject):
    """Starts and stops runs on the worker's thread and tells the window of them.

    States: `idle`, `loading` (a model), `running`, `stopping`. A run asked for while another is under way takes its
    place: the old one is stopped first, and has its own outcome.
    """

    runStarted = Signal(object)
    promptTrimmed = Signal(object)
    eventsArrived = Signal(object, object)
    cursorMoved = Signal(object)
    selectionChanged = Signal(object)
    finished = Signal(object)
    modelLoading = Signal(str)
    modelReady = Signal(object)
    failed = Signal(object)
    stateChanged = Signal(str)
    measured = Signal(object)
    measuringChanged = Signal(bool)
    answered = Signal(object)
    _errand = Signal(object)
    _load = Signal(object)
    _start = Signal(object)

    def __init__(self, engine: Engine | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._run: Run | None = None
        self._job: Job | None = None
        self._next: RunRequest | None = None
        self._silent: Run | None = None
        self._waiting: list[RunRequest] = []
        self._model: ModelInfo | None = None
        self._held: LoadRequest | None = None
        self._is_loading = False
        self._loads = 0
        self._jobs = 0
        self._state = "idle"
        self._pace = Pace()
        self._batch = QTimer(self, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._batch.timeout.connect(self._deliver)
        self._collector = Collector(self)
        self._thread = QThread(self, objectName="worker")
        self._worker: Worker | None = Worker(engine or CoreEngine())
        self._connect_worker(self._worker)
        self._cancels: list[threading.Event] = []
        self._last_resort = weakref.finalize(self, _end_thread, self._thread, self._cancels)
        self._collector.start()
        self._thread.start()

    @property
    def run(self) -> Run | None:
        """The latest run, under way or ended."""
        return self._run

    @property
    def model(self) -> ModelInfo | None:
        """The model held ready; None before the first has been loaded."""
        return self._model

    @property
    def state(self) -> str:
        """`idle`, `loading`, `running` or `stopping`."""
        return self._state

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return self._job is not None

    @Slot(object)
    def start(self, request: RunRequest) -> None:
        """Begin a run; one that is still under way is stopped and this one follows it."""
        if self._worker is None:
            return
        if self._job is not None:
            self._next = request
            self.stop()
            return
        self._jobs += 1
        self._run, self._job = Run(request), Job(self._jobs, request)
        self._cancels[:] = [self._job.cancel]
        self._pace.begin()
        self._collector.busy = True
        self._set_state("running")
        self.runStarted.emit(self._run)
        self._start.emit(self._job)

    @Slot(object)
    def measure(self, requests: list[RunRequest]) -> None:
        """Run these one after another beside the shown run, which stays; `measured(run)` tells each one's end.

        `stop` and `start` end it, whatever is left. Does nothing while a run is under way. Each begins from nothing
        and stays with its cache, so that they can be compared; one that fails leaves the others their turn.
        """
        if self._worker is None or self._job is not None or not requests:
            return
        self._waiting = [replace(request, prefix_budget=0, memory_fallback=False) for request in requests]
        self.measuringChanged.emit(True)
        self._measure_next()

    def _measure_next(self) -> None:
        request = self._waiting.pop(0)
        self._jobs += 1
        self._silent, self._job = Run(request), Job(self._jobs, request)
        self._cancels[:] = [self._job.cancel]
        self._pace.begin()
        self._collector.busy = True
        self._set_state("running")
        self._start.emit(self._job)

    @Slot()
    def stop(self) -> None:
        """Ask the run to end before its next forward pass; what it has written stays."""
        self._waiting.clear()
        if self._job is None:
            self._next = None
        elif not self._job.cancel.is_set():
            self._job.cancel.set()
            self._set_state("stopping")

    @Slot(object)
    def load_model(self, request: LoadRequest | str) -> None:
        """Hold a model ready, so that the next run need not wait for it."""
        if self._worker is not None:
            self._loads += 1
            self._load.emit(LoadRequest(request) if isinstance(request, str) else request)
            self._set_state(self._resting())

    def ask(self, request: PrefixRequest | RunRequest) -> None:
        """Have the worker serve a prefix, or reckon what a run would take, once it is free; `answered(Answer)` tells
        what came of it."""
        if self._worker is not None:
            self._errand.emit(request)

    def select_token(self, index: int | None) -> None:
        """Let the inspector speak of that token of the shown text; None for no one in particular."""
        if self._run is not None and self._run.select(index):
            self.selectionChanged.emit(self._run)

    def move_cursor(self, count: int) -> None:
        """Draw the first `count` tokens only."""
        if self._run is not None and self._run.move_cursor(count):
            self.cursorMoved.emit(self._run)

    def show_sequence(self, index: int) -> None:
        """Show another of the run's texts."""
        if self._run is not None and index != self._run.shown:
            self._run.show(index)
            self.selectionChanged.emit(self._run)
            self.cursorMoved.emit(self._run)

    def shut_down(self) -> None:
        """Stop whatever is under way and wait for the thread; the session can do nothing afterwards."""
        self._next = None
        self._waiting.clear()
        self._last_resort()
        if self._job is not None:
            self._on_ended(Ended(self._job.number))
        self._batch.stop()
        self._worker = None
        self._collector.stop()

    def _connect_worker(self, worker: Worker) -> None:
        worker.moveToThread(self._thread)
        pairs: tuple[tuple[object, Callable[..., None]], ...] = (
            (self._load, worker.load),
            (self._start, worker.run),
            (self._errand, worker.do),
            (worker.loading, self._on_loading),
            (worker.loaded, self._on_loaded),
            (worker.prepared, self._on_prepared),
            (worker.mail, self._on_mail),
            (worker.ended, self._on_ended),
            (worker.answered, self.answered),
        )
        for signal, slot in pairs:
            signal.connect(slot, Qt.ConnectionType.QueuedConnection)  # type: ignore[attr-defined]

    @Slot(object)
    def _on_loading(self, request: LoadRequest) -> None:
        if request != self._held:
            self._held = None
            self._is_loading = True
            self._set_state(self._resting())
            self.modelLoading.emit(request.model)

    @Slot(object)
    def _on_loaded(self, answer: Loaded) -> None:
        self._is_loading = False
        if not answer.for_run:
            self._loads -= 1
        if isinstance(answer.info, ModelInfo):
            self._hold(answer.request, answer.info)
        elif answer.error is not None and not answer.for_run:
            self.failed.emit(answer.error)
        self._set_state(self._resting())

    def _hold(self, request: LoadRequest, info: ModelInfo) -> None:
        if request != self._held:
            self._held, self._model = request, info
            self.modelReady.emit(info)

    @Slot(int, object)
    def _on_prepared(self, number: int, request: RunRequest) -> None:
        """The worker has left out the turns of a chat that have no place."""
        run = self._silent or self._run
        if self._job is not None and number == self._job.number and run is not None:
            run.request = request
            if run is not self._silent:
                self.promptTrimmed.emit(run)

    @Slot(int)
    def _on_mail(self, number: int) -> None:
        if self._job is None or number != self._job.number or self._batch.isActive():
            return
        wait = self._pace.wait()
        if wait <= 0:
            self._deliver()
        else:
            self._batch.start(max(1, round(wait * 1000)))

    @Slot()
    def _deliver(self) -> None:
        run = self._silent or self._run
        if self._job is None or run is None:
            return
        events = self._job.mailbox.take()
        if events:
            self._pace.delivered()
            run.apply(events)
            if run is not self._silent:
                self.eventsArrived.emit(run, events)

    @Slot(object)
    def _on_ended(self, answer: Ended) -> None:
        job, run = self._job, self._silent or self._run
        if job is None or run is None or answer.number != job.number:
            return
        self._batch.stop()
        self._deliver()
        self._job = None
        self._collector.busy = False
        run.outcome = self._outcome(run, job, answer.error)
        if run is self._silent:
            self._end_measurement(run)
            return
        self._set_state(self._resting())
        if run.outcome.error is not None:
            self.failed.emit(run.outcome.error)
        self.finished.emit(run.outcome)
        self._follow_up()

    def _end_measurement(self, run: Run) -> None:
        self._silent = None
        self.measured.emit(run)
        if self._waiting and self._next is None and self._worker is not None:
            self._measure_next()
            return
        self._waiting.clear()
        self._set_state(self._resting())
        self.measuringChanged.emit(False)
        self._follow_up()

    def _outcome(self, run: Run, job: Job, error: ErrorReport | None) -> Outcome:
        if error is not None:
            return Outcome("failed", error.title, error)
        if run.finished is not None:
            return outcomes.completed(run)
        if job.cancel.is_set():
            return outcomes.stopped(run)
        error = ErrorReport("The run ended early", "It gave no result.", "Try again.", kind="IncompleteRun")
        return Outcome("failed", error.title, error)

    def _follow_up(self) -> None:
        following, self._next = self._next, None
        if following is not None and self._job is None:
            self.start(following)

    def _resting(self) -> str:
        if self._job is not None and self._job.cancel.is_set():
            return "stopping"
        if self._is_loading or (self._loads and self._job is None):
            return "loading"
        return "idle" if self._job is None else "running"

    def _set_state(self, state: str) -> None:
        if state != self._state:
            self._state = state
            self.stateChanged.emit(state)


def _end_thread(thread: QThread, cancels: list[threading.Event]) -> None:
    """Cancel what runs and wait for the thread. Called at the latest when the interpreter ends: Qt would abort else."""
    for cancel in cancels:
        cancel.set()
    if shiboken6.isValid(thread):
        thread.quit()
        thread.wait()
