"""The session: the main thread's interface to the worker, used by the whole window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot

from decodescope.app.session.engine_router import EngineRouter
from decodescope.app.session.garbage_collection import GarbageCollector
from decodescope.app.session.mailbox import EventDelivery, ModelLoaded, RunEnded, RunInProgress, WorkerJob
from decodescope.app.session.side_runs import SideRunQueue
from decodescope.app.session.worker import Worker, WorkerThread, is_any_stuck
from decodescope.app.state import run_status
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import (
    LoadRequest,
    ModelInfo,
    Outcome,
    RunRequest,
)

if TYPE_CHECKING:
    from decodescope.app.session.engine import Engine
    from decodescope.app.session.queries.base import Query
    from decodescope.core.events import Event


class ShownRun(QObject):
    """The run that the views draw, up to its cursor."""

    cursorMoved = Signal(object)
    selectionChanged = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._run: Run | None = None

    @property
    def run(self) -> Run | None:
        """The shown run, in progress or finished."""
        return self._run

    def select_token(self, index: int | None) -> None:
        """Select a token of the shown text for the inspector; None for no selection."""
        if self._run is not None and self._run.select(index):
            self.selectionChanged.emit(self._run)

    def move_cursor(self, count: int) -> None:
        """Show only the first `count` tokens."""
        if self._run is not None and self._run.move_cursor(count):
            self.cursorMoved.emit(self._run)

    def show_sequence(self, index: int) -> None:
        """Show another sequence of the run."""
        if self._run is not None and index != self._run.shown_index:
            self._run.show_sequence(index)
            self.selectionChanged.emit(self._run)
            self.cursorMoved.emit(self._run)


class ModelTracker(QObject):
    """Tracks the loaded model. `loading(name)` and `ready(ModelInfo)` are emitted once per model, `ready` again if its
    info changes, e.g. the language; `failed(ErrorReport)` if the error belongs to no run.

    Between `begin_side_runs` and `end_side_runs`, models are loaded for hidden runs and no signal is emitted.
    """

    loading = Signal(str)
    ready = Signal(object)
    failed = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.info: ModelInfo | None = None
        """The loaded model; None before the first."""
        self.is_loading = False
        self._request: LoadRequest | None = None
        self._pending_count = 0
        self._run: Run | None = None
        self._has_side_runs = False
        self._model_before: LoadRequest | None = None

    @property
    def request(self) -> LoadRequest | None:
        """The load request of the model; None while it is not loaded."""
        return self._request

    @property
    def is_pending(self) -> bool:
        """Whether the window waits for a model."""
        return self._pending_count > 0

    def track_run(self, run: Run) -> None:
        """Keep `run.is_loading` up to date for this run."""
        self._run = run
        run.is_loading = run.request.load != self._request

    def count_request(self) -> None:
        """Count a load request of the window."""
        self._pending_count += 1

    def begin_side_runs(self) -> None:
        """Start of hidden runs, which may need other models; store the current one."""
        self._has_side_runs, self._model_before = True, self._request

    def end_side_runs(self) -> LoadRequest | None:
        """End of hidden runs: return the model to load again, None if it is loaded."""
        self._has_side_runs = False
        return self._model_before if self._request is None else None

    @Slot(object)
    def on_loading(self, request: LoadRequest) -> None:
        """The worker starts to load, or has that model already."""
        if request != self._request:
            self._request = None
            self.is_loading = True
            if not self._has_side_runs:
                self.loading.emit(request.model)

    @Slot(object)
    def on_loaded(self, answer: ModelLoaded) -> None:
        """The worker has loaded the model, or failed."""
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


class Session(ShownRun):
    """Starts and stops runs on the worker thread and emits their signals.

    States: `idle`, `loading` (a model), `running`, `stopping`. A run started while another is in progress replaces it:
    the old one is stopped first and has its own outcome.
    """

    runStarted = Signal(object)
    runShown = Signal(object)
    """A finished run replaces the shown one (`show`); nothing is computed."""
    promptTrimmed = Signal(object)
    recorded = Signal(object)
    """A finished run was recorded: a closed `Recording`. Follows `finished`."""
    eventsArrived = Signal(object, object)
    finished = Signal(object)
    modelLoading = Signal(str)
    modelReady = Signal(object)
    failed = Signal(object)
    stateChanged = Signal(str)
    measured = Signal(object)
    measuringChanged = Signal(bool)
    measuringProgressed = Signal(object)
    """Progress of the hidden runs: when they start and after each."""
    answered = Signal(object)
    """The `Answer` to a query, or a part of it."""

    def __init__(self, engine: Engine | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._current: RunInProgress | None = None
        self._next_request: RunRequest | None = None
        self._shown_before: Run | None = None
        """The last run with a text, shown again if a later one fails before it has any."""
        self._followed: Run | None = None
        """The latest run of another process that was shown."""
        self._latest: Run | None = None
        self._side_runs = SideRunQueue()
        self._jobs = 0
        self._recording_path: Callable[[Run], Path | None] = _no_recording
        self._state = "idle"
        self._is_closed = False
        self._model_tracker, self._delivery, self._garbage_collector = (
            ModelTracker(self),
            EventDelivery(self),
            GarbageCollector(self),
        )
        worker = Worker(engine or EngineRouter())
        self._thread = WorkerThread(worker, self)
        self._connect(worker)
        self._garbage_collector.start()

    @property
    def model(self) -> ModelInfo | None:
        """The loaded model; None before the first."""
        return self._model_tracker.info

    @property
    def state(self) -> str:
        """`idle`, `loading`, `running` or `stopping`."""
        return self._state

    @property
    def latest(self) -> Run | None:
        """The run that was started last, shown or not."""
        return self._latest if self._latest is not None else self._run

    @property
    def busy(self) -> bool:
        """Whether a run is in progress."""
        return self._current is not None

    def set_recording(self, recording_path: Callable[[Run], Path | None]) -> None:
        """Record each shown run to the file returned by `recording_path` at its start; None for no recording."""
        self._recording_path = recording_path

    @Slot(object)
    def start(self, request: RunRequest) -> None:
        """Start a run, after stopping one in progress."""
        if self._is_closed:
            return
        if self._current is not None:
            self._current.run.was_replaced = not self._current.is_silent
            self._next_request = request
            self.stop()
            return
        if self._run is not None and self._run.is_worth_keeping:
            self._shown_before = self._run
        self._run = self._latest = Run(request)
        self._model_tracker.track_run(self._run)
        self._begin(self._run)

    def show(self, run: Run) -> bool:
        """Show an earlier run: saved, recorded or scored. Returns False and does nothing while a run is in progress."""
        if self._is_closed or self._current is not None:
            return False
        self._run = run
        self.runShown.emit(run)
        return True

    def follow(self, run: Run) -> bool:
        """Show a run that another process computes; `receive` brings its events. Returns False and does nothing while a
        run of this session is in progress, or the shown one of another process.
        """
        if self._is_closed or self._current is not None:
            return False
        if self._run is not None and self._run is self._followed and self._run.outcome is None:
            return False
        if self._run is not None and self._run.is_worth_keeping:
            self._shown_before = self._run
        self._run = self._followed = run
        self.runStarted.emit(run)
        return True

    def receive(self, run: Run, events: list[Event]) -> None:
        """Add events to a followed run, shown or not."""
        run.apply(events)
        if run is self._run and not self._is_closed:
            self.eventsArrived.emit(run, events)

    def end_followed(self, run: Run, outcome: Outcome) -> None:
        """End a followed run."""
        run.outcome = outcome
        if run is self._run and not self._is_closed:
            self.finished.emit(outcome)

    def emit_current(self) -> None:
        """Emit model, state and shown run again for new listeners."""
        if self._model_tracker.info is not None:
            self.modelReady.emit(self._model_tracker.info)
        if self._model_tracker.request is not None and self._current is None:
            self.load_model(
                self._model_tracker.request
            )  # already loaded: the worker only describes it in the current language
        self.stateChanged.emit(self._state)
        if self._run is not None:
            for signal in (self.runShown, self.selectionChanged, self.cursorMoved):
                signal.emit(self._run)

    @Slot(object)
    def measure(self, requests: list[RunRequest]) -> None:
        """Run these requests one after another, hidden behind the shown run; `measured(run)` is emitted at each end.

        Each may name its own model, which is loaded when its turn comes; the shown run's model is loaded again after
        the last. `stop` and `start` end the series. Does nothing while a run is in progress.
        """
        if self._is_closed or self._current is not None or not requests:
            return
        self._side_runs.set_requests(requests)
        self._model_tracker.begin_side_runs()
        self.measuringChanged.emit(True)
        self.measuringProgressed.emit(self._side_runs.progress)
        self._begin(Run(self._side_runs.next()), is_silent=True)

    @Slot()
    def stop(self) -> None:
        """Stop the run before its next forward pass; its text stays."""
        self._side_runs.clear()
        if self._current is None:
            self._next_request = None
        else:
            self._current.job.cancel.set()
            self._update_state()

    @Slot(object)
    def load_model(self, request: LoadRequest | str) -> None:
        """Load a model in advance for the next run."""
        if not self._is_closed:
            self._model_tracker.count_request()
            self._thread.load(LoadRequest(request) if isinstance(request, str) else request)
            self._update_state()

    def request(self, query: Query) -> None:
        """Send a query to the worker; `answered(Answer)` returns the result."""
        if not self._is_closed:
            self._thread.send(query)

    def shut_down(self) -> None:
        """Stop everything and wait for the thread within limits; the session is unusable afterwards."""
        self._is_closed = True
        self._next_request = None
        self._side_runs.clear()
        if self._current is not None:
            self._current.job.end_reported.set()  # no window will show the end
        self._thread.end()
        if self._current is not None:
            self._on_ended(RunEnded(self._current.job.number))
        self._garbage_collector.stop(restore=not is_any_stuck())

    def _connect(self, worker: Worker) -> None:
        held, queued = self._model_tracker, Qt.ConnectionType.QueuedConnection
        worker.loading.connect(held.on_loading, queued)
        worker.loaded.connect(held.on_loaded, queued)
        worker.prepared.connect(self._delivery.on_prepared, queued)
        worker.eventsPending.connect(self._delivery.on_mail, queued)
        worker.ended.connect(self._on_ended, queued)
        worker.recorded.connect(self.recorded, queued)
        worker.answered.connect(self.answered, queued)
        for signal in (worker.loading, worker.loaded):
            signal.connect(self._update_state, queued)
        for signal in (held.loading, held.ready, held.failed):
            signal.connect(self._update_state)  # update the state before the model signals
        held.loading.connect(self.modelLoading)
        held.ready.connect(self.modelReady)
        held.failed.connect(self.failed)
        self._delivery.arrived.connect(self.eventsArrived)
        self._delivery.trimmed.connect(self.promptTrimmed)

    def _begin(self, run: Run, is_silent: bool = False) -> None:
        self._jobs += 1
        recording = None if is_silent else self._recording_path(run)
        self._current = RunInProgress(WorkerJob(self._jobs, run.request, recording), run, is_silent)
        self._delivery.begin(self._current)
        self._garbage_collector.set_busy(True)
        self._update_state()
        self._thread.start(self._current.job)  # its events arrive through the event loop, after `runStarted`
        if not is_silent:
            self.runStarted.emit(run)

    @Slot(object)
    def _on_ended(self, answer: RunEnded) -> None:
        underway = self._current
        if underway is None or answer.number != underway.job.number:
            return
        run, events = underway.run, self._delivery.finish()
        run.outcome = run_status.make_outcome(run, underway.job.cancel.is_set(), answer.error)
        if events and not underway.is_silent:
            self.eventsArrived.emit(run, events)
        self._current = None
        self._garbage_collector.set_busy(False)
        if underway.is_silent:
            self.measured.emit(run)
            self.measuringProgressed.emit(self._side_runs.count_finished())
        else:
            self._update_state()
            if run.outcome.error is not None:
                self.failed.emit(run.outcome.error)
            self.finished.emit(run.outcome)
        underway.job.end_reported.set()
        self._start_next(underway.is_silent)
        if run is self._run and run.outcome.kind == "failed" and not run.has_text and self._shown_before is not None:
            self.show(self._shown_before)

    def _start_next(self, was_silent: bool) -> None:
        """Start the next hidden run, or the run requested meanwhile."""
        following, self._next_request = self._next_request, None
        if was_silent and following is None and not self._side_runs.is_done and not self._is_closed:
            self._begin(Run(self._side_runs.next()), is_silent=True)
            return
        if was_silent:
            self._end_side_runs(reload_model=following is None)
        if following is not None and self._current is None:
            self.start(following)

    def _end_side_runs(self, reload_model: bool) -> None:
        """End the hidden runs; load the shown run's model again if `reload_model`."""
        self._side_runs.clear()
        model = self._model_tracker.end_side_runs()
        self._update_state()
        self.measuringChanged.emit(False)
        if reload_model and model is not None:
            self.load_model(model)

    @Slot()
    def _update_state(self) -> None:
        state = _state(self._current, self._model_tracker)
        if state != self._state:
            self._state = state
            self.stateChanged.emit(state)


def _no_recording(_run: Run) -> None:
    """Return None: no run is recorded."""


def _state(underway: RunInProgress | None, tracker: ModelTracker) -> str:
    if underway is not None and underway.job.cancel.is_set():
        return "stopping"
    if tracker.is_loading or (tracker.is_pending and underway is None):
        return "loading"
    return "idle" if underway is None else "running"
