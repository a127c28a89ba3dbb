"""The settings, events and process messages of a speed measurement. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

import msgspec

from decodescope.core.checks.arguments import (
    check_bool,
    check_integer,
    check_kind,
    check_number,
    check_one_of,
    check_text,
)
from decodescope.core.labs.processes.lab_processes import JsonLines
from decodescope.resources.language import tr

Way = Literal["batch", "weights", "drafts", "compiled", "offload", "parallel"]
WAYS: tuple[Way, ...] = ("batch", "weights", "drafts", "offload", "parallel", "compiled")
"""In the order they are measured; those that can take long come last."""
PROMPT = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside. "
    "One day, Lily went to the park with her mom."
)

MAX_THREADS = 1_024
MAX_SECONDS = 3_600
"""Maximum seconds of one repeat."""
MAX_REPEATS = 1_000


@dataclass(frozen=True, slots=True)
class MeasurementRequest:
    """The settings of a measurement: model, techniques and repeats. Loading arguments are those of `core.load`."""

    model: str
    draft: str = ""
    """Draft model; empty for one on this disk with the same tokenizer, if any."""
    device: str = "auto"
    dtype: str = "auto"
    weights: str = "auto"
    threads: int = 0
    """CPU threads; 0 for automatic."""
    allow_pickle: bool = False
    allow_remote_code: bool = False
    prompt: str = PROMPT
    ways: tuple[Way, ...] = WAYS
    seconds: float = 0.4
    """Approximate time of one repeat of a row, in seconds."""
    repeats: int = 3

    def check(self) -> None:
        """Raise ParameterError if a field is invalid. Unknown models and weights are reported when they are loaded."""
        texts = {"model": self.model, "draft": self.draft, "device": self.device, "dtype": self.dtype,
                 "weights": self.weights, "prompt": self.prompt}  # fmt: skip
        for name, text in texts.items():
            check_text(name, text)
        check_bool("allow_pickle", self.allow_pickle)
        check_bool("allow_remote_code", self.allow_remote_code)
        check_integer("threads", self.threads, 0, MAX_THREADS)
        check_kind("ways", self.ways, (list, tuple), tr("Pass a list of names."))
        for way in self.ways:
            check_one_of("ways", way, WAYS)
        check_number("seconds", self.seconds, 0, MAX_SECONDS)
        check_integer("repeats", self.repeats, 1, MAX_REPEATS)


@dataclass(frozen=True, slots=True)
class Row:
    """One measured variant, such as `batch 8` or `weights int8`."""

    way: Way
    name: str


@dataclass(frozen=True, slots=True)
class RowPlan:
    """All rows, in the order they are measured."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class SpeedReference:
    """The reference of all rows: the model as it is stored, and this machine's memory bandwidth."""

    model: str
    device: str
    weights: str
    """Format of the weights: float32, int8 …"""
    weight_bytes: int
    bandwidth: float
    """Bytes per second for repeated reads of a block as large as the weights."""
    threads: int
    tokens: int
    """Tokens per text."""
    draft: str = ""
    """The draft model; empty for none."""


@dataclass(frozen=True, slots=True)
class RowStarted:
    """The measurement of a row starts."""

    row: Row


@dataclass(frozen=True, slots=True)
class RowMeasurement:
    """Measured speed and memory of one row."""

    row: Row
    speeds: tuple[float, ...]
    """Tokens per second of each repeat, all texts together."""
    bytes: int
    """Bytes in memory: weights and cache; for several processes, the weights of the fullest one."""
    limit: float
    """Tokens per second if each pass only had to read the weights once."""
    texts: int = 1
    same: bool | None = None
    """Whether the text equals the baseline's; None where it may differ."""
    per_pass: float | None = None
    """Tokens per pass of the model, for speculative decoding."""
    predicted: float | None = None
    """Predicted tokens per second."""
    base: float = 0.0
    """Tokens per second of the reference; 0 if this row is the reference of others."""
    against: tuple[float, ...] = ()
    """Tokens per second of each interleaved repeat of the reference, so that disturbances affect both.

    Empty if the first row of the technique is the reference.
    """

    @property
    def speed(self) -> float:
        """Median tokens per second, all texts together."""
        return median(self.speeds)

    @property
    def each(self) -> float:
        """Median tokens per second of one text."""
        return self.speed / self.texts

    @property
    def ratio(self) -> float:
        """Speed relative to the reference."""
        return self.speed / self.base if self.base else 1.0


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row that cannot be measured here, with the reason as a sentence."""

    row: Row
    reason: str


@dataclass(frozen=True, slots=True)
class MeasurementFinished:
    """The measurement is complete."""

    seconds: float


Event = RowPlan | SpeedReference | RowStarted | RowMeasurement | SkippedRow | MeasurementFinished
EVENTS: tuple[type[Event], ...] = (RowPlan, SpeedReference, RowStarted, RowMeasurement, SkippedRow, MeasurementFinished)


class SpeedJob(msgspec.Struct, frozen=True):
    """The settings of the measurement, and the language of its messages."""

    settings: MeasurementRequest
    language: str


class MeasurementFailed(msgspec.Struct, frozen=True):
    """The measurement failed, with the texts of a DecodescopeError."""

    cause: str
    remedy: str
    details: str


LINES = JsonLines[Event | MeasurementFailed](*EVENTS, MeasurementFailed)
