"""Trainings of the preference lab, on a thread of their own, so that runs go on meanwhile. Imports torch there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.session.background_task import BackgroundTask, report_of
from app.session.task_manager import TaskManager
from app.state.labs import BASE, BUNDLED, MINE, STAGES, CompletionsDrawn, LabWish, Task, TokensScored
from app.state.worker_messages import ErrorReport

_WORK = "preference"
MINE_FILE = "rankings.jsonl"
FolderOf = Callable[[Task], Path]


class LabWork(QObject):
    """One piece of work at a time. `arrived(LabWish, event)` with events of `core.labs.preference` or of
    `app.state.labs`; `ended(LabWish, ErrorReport | None)` once nothing follows."""

    began = Signal(object)
    arrived = Signal(object, object)
    ended = Signal(object, object)

    def __init__(self, folder: Callable[[], Path], parent: QObject | None = None) -> None:
        """`folder()`: where the user's data lies."""
        super().__init__(parent)
        self._data = folder
        self._errands = TaskManager(self)
        self._errands.ended.connect(self._on_ended)
        self._wish: LabWish | None = None
        self._error: ErrorReport | None = None
        self._folders: dict[Task, Path] = {}
        self.told: dict[Task, list[object]] = {}
        """What each kind of work has told so far."""

    @property
    def wish(self) -> LabWish | None:
        """What is under way."""
        return self._wish

    @property
    def home(self) -> Path:
        """Where everything lies that the lab makes."""
        return self._data() / "preference"

    def folder_of(self, task: Task) -> Path:
        """Where what comes of that stage lies."""
        names = {"sft": "storyteller-tuned", "reward": "reward", "ppo": "storyteller-ppo"}
        return self.home / names[task]

    def is_done(self, task: Task) -> bool:
        """Whether there is something that came of that stage."""
        return (self.folder_of(task) / "config.json").is_file()

    @property
    def done(self) -> frozenset[Task]:
        """The stages that something came of."""
        return frozenset(task for task, _ in STAGES if self.is_done(task))

    def start(self, wish: LabWish) -> None:
        """Begin; nothing while something is under way."""
        if self._wish is not None:
            return
        self._wish, self._error = wish, None
        self.told[wish.task] = []
        self.began.emit(wish)
        self._errands.send(_WORK, self._work)

    @Slot()
    def stop(self) -> None:
        """End what is under way; a training goes on from there when it is begun again."""
        self._errands.stop(_WORK)

    def end(self) -> None:
        """The window closes."""
        self._errands.end()

    def _work(self, errand: BackgroundTask) -> None:
        """On its own thread."""
        assert self._wish is not None
        try:
            for event in _events(self._wish, errand, self.home, self.folder_of):
                errand.tell(self._on_event, event)
        except Exception as error:
            errand.tell(self._on_error, report_of(error))

    def _on_event(self, event: object) -> None:
        assert self._wish is not None
        self.told[self._wish.task].append(event)
        self.arrived.emit(self._wish, event)

    def _on_error(self, error: ErrorReport) -> None:
        self._error = error

    @Slot(str)
    def _on_ended(self, _name: str) -> None:
        wish, self._wish = self._wish, None
        self.ended.emit(wish, self._error)


def _events(wish: LabWish, errand: BackgroundTask, home: Path, folder_of: FolderOf) -> Iterator[object]:
    import torch

    torch.set_num_threads(1)  # of this thread: as quick for a small model, and the window keeps the other processor
    yield from _TASKS[wish.task](wish, errand, home, folder_of)


def _sft(wish: LabWish, errand: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from core import labs

    yield from labs.preference.sft(
        None if wish.data == BUNDLED else wish.data, model=_model(False, folder_of), folder=folder_of("sft"),
        seed=wish.seed, cancel=errand.stop, **({"steps": wish.steps} if wish.steps else {}),
    )  # fmt: skip


def _reward(wish: LabWish, errand: BackgroundTask, home: Path, folder_of: FolderOf) -> Iterator[object]:
    from core import labs

    data = {BUNDLED: None, MINE: home / MINE_FILE}.get(wish.data, wish.data)
    yield from labs.preference.train_reward(
        data, model=_model(False, folder_of), folder=folder_of("reward"), steps=wish.steps or None, seed=wish.seed,
        cancel=errand.stop,
    )  # fmt: skip


def _ppo(wish: LabWish, errand: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from core import labs

    usual = labs.preference.PpoSettings()
    settings = labs.preference.PpoSettings(beta=wish.beta, steps=wish.steps or usual.steps, seed=wish.seed)
    yield from labs.preference.ppo(
        folder_of("reward"), model=_model(wish.tuned, folder_of), folder=folder_of("ppo"), settings=settings,
        cancel=errand.stop,
    )  # fmt: skip


def _tokens(wish: LabWish, _errand: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from core import labs

    judge = labs.preference.load_reward_model(folder_of("reward"))
    found = labs.preference.score_tokens(judge, wish.prompt, wish.text)
    yield TokensScored(tuple((token.text, token.reward) for token in found))


def _best_of(wish: LabWish, errand: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from core import labs

    judge = labs.preference.load_reward_model(folder_of("reward"))
    yield from labs.preference.best_of(_model(False, folder_of), judge, wish.prompt, seed=wish.seed, cancel=errand.stop)


def _draw(wish: LabWish, errand: BackgroundTask, _home: Path, folder_of: FolderOf) -> Iterator[object]:
    from core import labs

    found = labs.preference.completions(
        _model(False, folder_of), wish.prompt, wish.count, seed=wish.seed, cancel=errand.stop
    )
    yield CompletionsDrawn(wish.prompt, tuple(found))


def _model(tuned: bool, folder_of: FolderOf) -> str:
    return str(folder_of("sft")) if tuned else BASE


_TASKS: dict[Task, Callable[[LabWish, BackgroundTask, Path, FolderOf], Iterator[object]]] = {
    "sft": _sft, "reward": _reward, "ppo": _ppo, "tokens": _tokens, "best_of": _best_of, "draw": _draw,
}  # fmt: skip
