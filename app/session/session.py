"""The session: the one object on the main thread that everything in the window talks to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.session.engine_router import EngineRouter
from app.session.garbage_collection import GarbageCollector
from app.session.mailbox import EventDelivery, ModelLoaded, RunEnded, RunInProgress, WorkerJob
from app.session.side_runs import SideRunQueue
from app.session.worker import Worker, WorkerThread, is_any_stuck
from app.state import run_status
from app.state.run import Run
from app.state.worker_messages import (
    BackendRequest,
    LoadRequest,
    ModelInfo,
    PrefixRequest,
    RunRequest,
    StepReplayRequest,
)

if TYPE_CHECKING:
    from app.session.engine import Engine
    from app.state.layer_queries import ModelQuery


class ShownRun(QObject):
    """What the views draw: one run, up to its cursor."""

    cursorMoved = Signal(object)
    selectionChanged = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._run: Run | None = None

    @property
    def run(self) -> Run | None:
        """The latest run, under way or ended."""
        return self._run

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
        if self._run is not None and index != self._run.shown_index:
            self._run.show_sequence(index)
            self.selectionChanged.emit(self._run)
            self.cursorMoved.emit(self._run)


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


class Session(ShownRun):
    """Starts and stops runs on the worker's thread and tells the window of them.

    States: `idle`, `loading` (a model), `running`, `stopping`. A run asked for while another is under way takes its
    place: the old one is stopped first, and has its own outcome.
    """

    runStarted = Signal(object)
    runShown = Signal(object)
    """A run that ended earlier takes the place of the shown one (`show`); nothing is computed."""
    promptTrimmed = Signal(object)
    recorded = Signal(object)
    """A run that has ended is recorded: a `Recording`, closed. Comes behind `finished`."""
    eventsArrived = Signal(object, object)
    finished = Signal(object)
    modelLoading = Signal(str)
    modelReady = Signal(object)
    failed = Signal(object)
    stateChanged = Signal(str)
    measured = Signal(object)
    measuringChanged = Signal(bool)
    measuringProgressed = Signal(object)
    """How far the runs beside the shown one have come (a Progress): as they begin, and after each."""
    answered = Signal(object)
    layersInspected = Signal(object)
    """A part of what a look inside a step has found (`Looked`)."""

    def __init__(self, engine: Engine | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._current: RunInProgress | None = None
        self._next_request: RunRequest | None = None
        self._shown_before: Run | None = None
        """The last run with a text, to be shown again where a later one fails before it has any."""
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
        """The model held ready; None before the first has been loaded."""
        return self._model_tracker.info

    @property
    def state(self) -> str:
        """`idle`, `loading`, `running` or `stopping`."""
        return self._state

    @property
    def latest(self) -> Run | None:
        """The run that was started last, whether it is shown or not."""
        return self._latest if self._latest is not None else self._run

    @property
    def busy(self) -> bool:
        """Whether a run is under way."""
        return self._current is not None

    def set_recording(self, recording_path: Callable[[Run], Path | None]) -> None:
        """Have each run that is shown recorded where `recording_path` says as it begins; None: it is not."""
        self._recording_path = recording_path

    @Slot(object)
    def start(self, request: RunRequest) -> None:
        """Begin a run; one that is still under way is stopped and this one follows it."""
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
        """Show a run that was not made just now: kept, recorded, scored. False, and nothing, while one is under way."""
        if self._is_closed or self._current is not None:
            return False
        self._run = run
        self.runShown.emit(run)
        return True

    def emit_current(self) -> None:
        """Say once more what is so, for those who have come since: the model, the state, the shown run."""
        if self._model_tracker.info is not None:
            self.modelReady.emit(self._model_tracker.info)
        if self._model_tracker.request is not None and self._current is None:
            self.load_model(self._model_tracker.request)  # it is held: the worker only says it in the language of now
        self.stateChanged.emit(self._state)
        if self._run is not None:
            for signal in (self.runShown, self.selectionChanged, self.cursorMoved):
                signal.emit(self._run)

    @Slot(object)
    def measure(self, requests: list[RunRequest]) -> None:
        """Run these one after another beside the shown run, which stays; `measured(run)` tells each one's end.

        Each may name a model of its own: it is loaded when its turn comes, one at a time, and the shown run's model is
        loaded again behind the last. `stop` and `start` end it, whatever is left. Does nothing while a run is under
        way.
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
        """Ask the run to end before its next forward pass; what it has written stays."""
        self._side_runs.clear()
        if self._current is None:
            self._next_request = None
        else:
            self._current.job.cancel.set()
            self._update_state()

    @Slot(object)
    def load_model(self, request: LoadRequest | str) -> None:
        """Hold a model ready, so that the next run need not wait for it."""
        if not self._is_closed:
            self._model_tracker.count_request()
            self._thread.load(LoadRequest(request) if isinstance(request, str) else request)
            self._update_state()

    def request(self, request: PrefixRequest | RunRequest | StepReplayRequest | BackendRequest) -> None:
        """Have the worker serve a prefix, suppose a step, reckon what a run would take, or find out who takes the
        steps, once it is free; `answered(Answer)` tells what came of it."""
        if not self._is_closed:
            self._thread.send_request(request)

    def inspect_layers(self, request: ModelQuery) -> None:
        """Have the worker look inside a step, once it is free; `layersInspected` tells what it finds, part by part."""
        if not self._is_closed:
            self._thread.inspect_layers(request)

    def shut_down(self) -> None:
        """Stop whatever is under way and wait for the thread, within bounds; the session can do nothing afterwards."""
        self._is_closed = True
        self._next_request = None
        self._side_runs.clear()
        if self._current is not None:
            self._current.job.end_reported.set()  # nobody is told any more
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
        worker.layersInspected.connect(self.layersInspected, queued)
        for signal in (worker.loading, worker.loaded):
            signal.connect(self._update_state, queued)
        for signal in (held.loading, held.ready, held.failed):
            signal.connect(self._update_state)  # who hears of a model finds the state that goes with it
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
        self._thread.start(self._current.job)  # its events come by the loop: not before everybody knows of the run
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
        """Measure the next one, or start the run that was asked for meanwhile."""
        following, self._next_request = self._next_request, None
        if was_silent and following is None and not self._side_runs.is_done and not self._is_closed:
            self._begin(Run(self._side_runs.next()), is_silent=True)
            return
        if was_silent:
            self._end_side_runs(reload_model=following is None)
        if following is not None and self._current is None:
            self.start(following)

    def _end_side_runs(self, reload_model: bool) -> None:
        """Nothing is left to be measured; the shown run's model `reload_model` unless another run follows."""
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
    """No run is recorded."""


def _state(underway: RunInProgress | None, held: ModelTracker) -> str:
    if underway is not None and underway.job.cancel.is_set():
        return "stopping"
    if held.is_loading or (held.is_pending and underway is None):
        return "loading"
    return "idle" if underway is None else "running"
