"""Requests to the preference lab and its results: plain data passed to the training thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from decodescope.app.state.worker_messages import ErrorReport
from decodescope.core.labs import scale, speed
from decodescope.resources.language import mark

Task = Literal["sft", "reward", "ppo", "tokens", "best_of", "draw"]
STAGES: tuple[tuple[Task, str], ...] = (
    ("sft", mark("Fine-tuning")),
    ("reward", mark("Reward model")),
    ("ppo", mark("PPO")),
)
"""The paper's three steps, in order."""
BUNDLED, USER_RANKINGS = "bundled", "mine"
"""Data shipped with the program, or the user's own rankings."""
BASE_MODEL = "storyteller"
"""The model that all three steps start from."""


@dataclass(frozen=True, slots=True)
class LabRequest:
    """A task of the preference lab."""

    task: Task
    data: str = BUNDLED
    """`BUNDLED`, `USER_RANKINGS`, or a JSONL file."""
    tuned: bool = False
    """Whether to start from the fine-tuned model instead of storyteller."""
    steps: int = 0
    """0 means the core's default."""
    beta: float = 0.1
    seed: int = 0
    prompt: str = ""
    text: str = ""
    count: int = 4
    """Number of completions to sample for ranking."""


@dataclass(frozen=True, slots=True)
class RewardedTokens:
    """A text with the reward after each of its tokens."""

    tokens: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class CompletionsToRank:
    """Sampled completions to be ranked."""

    prompt: str
    completions: tuple[str, ...]


class ScaleRequest(NamedTuple):
    """A run of the scale lab: model, parallelism scheme and number of processes."""

    model: str
    scheme: str
    processes: int
    options: scale.Options = scale.Options()


class SpeedResults:
    """Collects the events of a measurement and keeps the results however it ends."""

    def __init__(self) -> None:
        self.rows: Sequence[speed.Row] = ()
        self.ground: speed.SpeedReference | None = None
        self.current: speed.Row | None = None
        """The row being measured."""
        self.measured: dict[speed.Row, speed.RowMeasurement] = {}
        self.skipped: dict[speed.Row, str] = {}
        """Rows that cannot be measured here, with the reason."""
        self.seconds: float | None = None
        """Total duration; None before the end."""
        self.error: ErrorReport | None = None
        self.is_running = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.measured or self.skipped or self.error)

    @property
    def ways(self) -> list[speed.Way]:
        """Techniques that have results or reasons, in the order of measurement."""
        present = {row.way for row in (*self.measured, *self.skipped)}
        return [way for way in speed.WAYS if way in present]

    @property
    def done_count(self) -> int:
        """Number of finished rows."""
        return len(self.measured) + len(self.skipped)

    def measurements_of(self, technique: speed.Way) -> list[speed.RowMeasurement]:
        """Return the measurements of a technique."""
        return [found for row, found in self.measured.items() if row.way == technique]

    def skipped_of(self, technique: speed.Way) -> list[tuple[speed.Row, str]]:
        """Return the rows of a technique that were left out, with the reason."""
        return [(row, reason) for row, reason in self.skipped.items() if row.way == technique]

    def process(self, event: speed.Event) -> None:
        """Process an event."""
        match event:
            case speed.RowPlan(rows):
                self.rows = rows
            case speed.SpeedReference():
                self.ground = event
            case speed.RowStarted(row):
                self.current = row
            case speed.RowMeasurement(row):
                self.measured[row] = event
            case speed.SkippedRow(row, reason):
                self.skipped[row] = reason
            case speed.MeasurementFinished(seconds):
                self.seconds = seconds
