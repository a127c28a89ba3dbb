"""What is asked of the preference lab: plain data that crosses to the thread that trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from app.state.worker_messages import ErrorReport
from core.labs import scale, speed
from resources.language import mark

Task = Literal["sft", "reward", "ppo", "tokens", "best_of", "draw"]
STAGES: tuple[tuple[Task, str], ...] = (
    ("sft", mark("Fine-tuning")),
    ("reward", mark("Reward model")),
    ("ppo", mark("PPO")),
)
"""The paper's three steps, in their order."""
BUNDLED, USER_RANKINGS = "bundled", "mine"
"""Data that ships with the program; rankings of one's own."""
BASE_MODEL = "storyteller"
"""The model that all three begin from."""


@dataclass(frozen=True, slots=True)
class LabRequest:
    """One piece of work."""

    task: Task
    data: str = BUNDLED
    """`BUNDLED`, `USER_RANKINGS`, or a JSONL file."""
    tuned: bool = False
    """Begin from the fine-tuned model, not from storyteller."""
    steps: int = 0
    """0: as many as the core takes by itself."""
    beta: float = 0.1
    seed: int = 0
    prompt: str = ""
    text: str = ""
    count: int = 4
    """Completions that are drawn to be put in order."""


@dataclass(frozen=True, slots=True)
class ScoredTokens:
    """A text with the reward after each of its tokens."""

    tokens: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class CompletionsToRank:
    """What is to be put in order."""

    prompt: str
    completions: tuple[str, ...]


class ScaleRequest(NamedTuple):
    """One run: a model, how its work is divided, among how many."""

    model: str
    scheme: str
    processes: int
    options: scale.Options = scale.Options()


class SpeedResults:
    """Begins empty, takes the measurement's events one by one, and keeps them whatever ends it."""

    def __init__(self) -> None:
        self.rows: Sequence[speed.Row] = ()
        self.ground: speed.Ground | None = None
        self.current: speed.Row | None = None
        """What is being measured."""
        self.measured: dict[speed.Row, speed.Measured] = {}
        self.skipped: dict[speed.Row, str] = {}
        """What cannot be measured here, and why."""
        self.seconds: float | None = None
        """How long all of it took; None before its end."""
        self.error: ErrorReport | None = None
        self.is_running = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.measured or self.skipped or self.error)

    @property
    def ways(self) -> list[speed.Way]:
        """Those that something came of, in the order they are measured."""
        told = {row.way for row in (*self.measured, *self.skipped)}
        return [way for way in speed.WAYS if way in told]

    @property
    def done_count(self) -> int:
        """Rows that something came of."""
        return len(self.measured) + len(self.skipped)

    def measurements_of(self, way: speed.Way) -> list[speed.Measured]:
        """What was measured of that way."""
        return [found for row, found in self.measured.items() if row.way == way]

    def skipped_of(self, way: speed.Way) -> list[tuple[speed.Row, str]]:
        """What was left out of that way, and why."""
        return [(row, reason) for row, reason in self.skipped.items() if row.way == way]

    def process(self, event: speed.Event) -> None:
        """One event more."""
        match event:
            case speed.Planned(rows):
                self.rows = rows
            case speed.Ground():
                self.ground = event
            case speed.Begun(row):
                self.current = row
            case speed.Measured(row):
                self.measured[row] = event
            case speed.LeftOut(row, reason):
                self.skipped[row] = reason
            case speed.Done(seconds):
                self.seconds = seconds
