"""Jobs of the preference lab, run in their own thread so that runs can go on. Imports torch in that thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.features.labs.state import (
    BASE_MODEL,
    BUNDLED,
    STAGES,
    USER_RANKINGS,
    CompletionsToRank,
    LabRequest,
    RewardedTokens,
    ScaleRequest,
    SpeedResults,
    Task,
)
from decodescope.app.session.background_tasks import BackgroundTask, TaskManager, error_report
from decodescope.app.state.worker_messages import ErrorReport, make_error_report
from decodescope.core.errors import DecodescopeError, UnforeseenError
from decodescope.core.labs import scale, speed
from decodescope.resources.language import tr

_PREFERENCE = "preference"
RANKINGS_FILE = "rankings.jsonl"
FolderOf = Callable[[Task], Path]


class PreferenceJobs(QObject):
    """Runs one job at a time. `arrived(LabRequest, event)`: events of `core.labs.preference` or of the labs'
    `state.py`; `ended(LabRequest, ErrorReport | None)`.
    """

    started = Signal(object)
    arrived = Signal(object, object)
    ended = Signal(object, object)

    def __init__(self, folder: Callable[[], Path], parent: QObject | None = None) -> None:
        """`folder()` returns the user's data folder."""
        super().__init__(parent)
        self._data = folder
        self._tasks = TaskManager(self)
        self._tasks.ended.connect(self._on_ended)
        self._current_request: LabRequest | None = None
        self._error: ErrorReport | None = None
        self._folders: dict[Task, Path] = {}
        self.events: dict[Task, list[object]] = {}
        """The events of each kind of job so far."""

    @property
    def current_request(self) -> LabRequest | None:
        """The running job."""
        return self._current_request

    @property
    def folder(self) -> Path:
        """The folder with all files of the lab."""
        return self._data() / "preference"

    def folder_of(self, task: Task) -> Path:
        """Return the output folder of a stage."""
        names = {"sft": "storyteller-tuned", "reward": "reward", "ppo": "storyteller-ppo"}
        return self.folder / names[task]

    def is_done(self, task: Task) -> bool:
        """Return whether a stage has results."""
        return (self.folder_of(task) / "config.json").is_file()

    @property
    def finished_tasks(self) -> frozenset[Task]:
        """The stages that have results."""
        return frozenset(task for task, _ in STAGES if self.is_done(task))

    def start(self, request: LabRequest) -> None:
        """Start a job, unless one is running."""
        if self._current_request is not None:
            return
        self._current_request, self._error = request, None
        self.events[request.task] = []
        self.started.emit(request)
        self._tasks.start(_PREFERENCE, self._work)

    @Slot()
    def stop(self) -> None:
        """Stop the job; a training resumes from there when started again."""
        self._tasks.stop(_PREFERENCE)

    def stop_and_wait(self) -> None:
        """Stop when the window closes."""
        self._tasks.stop_all()

    def _work(self, task: BackgroundTask) -> None:
        """Run the job in the task's thread."""
        assert self._current_request is not None
        try:
            for event in _preference_events(self._current_request, task, self.folder, self.folder_of):
                task.post(self._on_event, event)
        except Exception as error:
            task.post(self._on_error, error_report(error))

    def _on_event(self, event: object) -> None:
        assert self._current_request is not None
        self.events[self._current_request.task].append(event)
        self.arrived.emit(self._current_request, event)

    def _on_error(self, error: ErrorReport) -> None:
        self._error = error

    @Slot(str)
    def _on_ended(self, _name: str) -> None:
        request, self._current_request = self._current_request, None
        self.ended.emit(request, self._error)


def _preference_events(request: LabRequest, task: BackgroundTask, home: Path, folder_of: FolderOf) -> Iterator[object]:
    import torch

    torch.set_num_threads(1)  # this thread only: as fast for a small model, and leaves a processor to the window
    yield from _TASKS[request.task](request, task, home, folder_of)


def _sft(request: LabRequest, task: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from decodescope.core import labs

    yield from labs.preference.sft(
        None if request.data == BUNDLED else request.data, model=_model_name(False, folder_of), folder=folder_of("sft"),
        seed=request.seed, cancel=task.stop_event, **({"steps": request.steps} if request.steps else {}),
    )  # fmt: skip


def _reward(request: LabRequest, task: BackgroundTask, home: Path, folder_of: FolderOf) -> Iterator[object]:
    from decodescope.core import labs

    data = {BUNDLED: None, USER_RANKINGS: home / RANKINGS_FILE}.get(request.data, request.data)
    yield from labs.preference.train_reward(
        data,
        model=_model_name(False, folder_of),
        folder=folder_of("reward"),
        steps=request.steps or None,
        seed=request.seed,
        cancel=task.stop_event,
    )


def _ppo(request: LabRequest, task: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from decodescope.core import labs

    usual = labs.preference.PpoSettings()
    settings = labs.preference.PpoSettings(beta=request.beta, steps=request.steps or usual.steps, seed=request.seed)
    yield from labs.preference.ppo(
        folder_of("reward"), model=_model_name(request.tuned, folder_of), folder=folder_of("ppo"), settings=settings,
        cancel=task.stop_event,
    )  # fmt: skip


def _score_tokens(request: LabRequest, _task: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from decodescope.core import labs

    judge = labs.preference.load_reward_model(folder_of("reward"))
    found = labs.preference.score_tokens(judge, request.prompt, request.text)
    yield RewardedTokens(tuple((token.text, token.reward) for token in found))


def _best_of(request: LabRequest, task: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from decodescope.core import labs

    judge = labs.preference.load_reward_model(folder_of("reward"))
    yield from labs.preference.best_of(
        _model_name(False, folder_of), judge, request.prompt, seed=request.seed, cancel=task.stop_event
    )


def _draw_completions(request: LabRequest, task: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from decodescope.core import labs

    found = labs.preference.completions(
        _model_name(False, folder_of), request.prompt, request.count, seed=request.seed, cancel=task.stop_event
    )
    yield CompletionsToRank(request.prompt, tuple(found))


def _model_name(tuned: bool, folder_of: FolderOf) -> str:
    return str(folder_of("sft")) if tuned else BASE_MODEL


_TASKS: dict[Task, Callable[[LabRequest, BackgroundTask, Path, FolderOf], Iterator[object]]] = {
    "sft": _sft,
    "reward": _reward,
    "ppo": _ppo,
    "tokens": _score_tokens,
    "best_of": _best_of,
    "draw": _draw_completions,
}


@dataclass
class ScaleRun:
    """Request, events so far, and error of a run."""

    request: ScaleRequest
    events: list[object] = field(default_factory=list)
    error: ErrorReport | None = None
    is_running: bool = True


class ScaleJobs(QObject):
    """Runs one job per page, by page name. `arrived(page, event)`: events of `core.labs.scale`; `ended(page)`."""

    started = Signal(str)
    arrived = Signal(str, object)
    ended = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = TaskManager(self)
        self._tasks.ended.connect(self._on_ended)
        self.runs: dict[str, ScaleRun] = {}
        """The last run of each page."""

    def start(self, page: str, request: ScaleRequest) -> None:
        """Start the run of `page`, unless it is running already."""
        if self._tasks.is_running(page):
            return
        run = self.runs[page] = ScaleRun(request)
        self.started.emit(page)
        self._tasks.start(page, lambda task: self._work(task, page, run))

    def stop(self, page: str) -> None:
        """Stop the processes; `ended` follows when they have exited."""
        self._tasks.stop(page)

    @Slot()
    def stop_all(self) -> None:
        """Stop all when the lab window is closed."""
        for page in self.runs:
            self.stop(page)

    def stop_and_wait(self) -> None:
        """Stop when the window closes."""
        self._tasks.stop_all()

    def _work(self, task: BackgroundTask, page: str, run: ScaleRun) -> None:
        """Run the job in the task's thread."""
        try:
            for event in _scale_events(run.request, task.stop_event):
                task.post(self._on_event, page, event)
        except DecodescopeError as error:
            task.post(self._on_error, run, make_error_report(error))
        except Exception as error:
            cause = tr("The lab failed with an unexpected error.")
            unforeseen = UnforeseenError(cause, "", f"{type(error).__name__}: {error}")
            task.post(self._on_error, run, make_error_report(unforeseen))

    def _on_event(self, page: str, event: object) -> None:
        self.runs[page].events.append(event)
        self.arrived.emit(page, event)

    def _on_error(self, run: ScaleRun, error: ErrorReport) -> None:
        run.error = error

    @Slot(str)
    def _on_ended(self, page: str) -> None:
        self.runs[page].is_running = False
        self.ended.emit(page)


def _scale_events(request: ScaleRequest, cancel: threading.Event) -> Iterator[object]:
    if request.scheme == scale.ZERO_R:
        yield from scale.measuring_memory(request.model, request.processes, cancel=cancel)
    else:
        yield from scale.measuring(
            request.model, request.scheme, request.processes, options=request.options, cancel=cancel
        )


_SPEED = "speed"


class SpeedJobs(QObject):
    """Runs one measurement at a time. `changed`: new results; `ended`: the measurement has ended."""

    changed = Signal()
    ended = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = TaskManager(self)
        self._tasks.ended.connect(self._on_ended)
        self.speeds = SpeedResults()
        """Results of the last measurement."""

    def start(self, request: speed.MeasurementRequest) -> None:
        """Start a measurement, unless one is running."""
        if self._tasks.is_running(_SPEED):
            return
        self.speeds = SpeedResults()
        self.speeds.is_running = True
        self._tasks.start(_SPEED, lambda task: self._work(task, request))
        self.changed.emit()

    @Slot()
    def stop(self) -> None:
        """Stop the processes; the results stay."""
        self._tasks.stop(_SPEED)

    def stop_and_wait(self) -> None:
        """Stop when the window closes."""
        self._tasks.stop_all()

    def _work(self, task: BackgroundTask, request: speed.MeasurementRequest) -> None:
        """Run the job in the task's thread."""
        try:
            for event in speed.measuring(request, task.stop_event):
                task.post(self._on_event, event)
        except Exception as error:
            task.post(self._on_error, error_report(error))

    def _on_event(self, event: speed.Event) -> None:
        self.speeds.process(event)
        self.changed.emit()

    def _on_error(self, error: ErrorReport) -> None:
        self.speeds.error = error

    @Slot(str)
    def _on_ended(self, _name: str) -> None:
        self.speeds.is_running, self.speeds.current = False, None
        self.changed.emit()
        self.ended.emit()
