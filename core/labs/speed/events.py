"""The settings, events and process messages of a speed measurement. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

import msgspec

from core.checks.arguments import check_bool, check_integer, check_kind, check_number, check_one_of, check_text
from core.labs.processes.lab_processes import JsonLines
from resources.language import tr

Way = Literal["batch", "weights", "drafts", "compiled", "offload", "parallel"]
WAYS: tuple[Way, ...] = ("batch", "weights", "drafts", "offload", "parallel", "compiled")
"""In the order they are measured: what can take long comes last."""
PROMPT = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside. "
    "One day, Lily went to the park with her mom."
)

MAX_THREADS = 1_024
MAX_SECONDS = 3_600
"""Seconds of one repeat."""
MAX_REPEATS = 1_000


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured, and on which model; loaded as the same arguments of `core.load` say."""

    model: str
    draft: str = ""
    """A model that drafts; empty: one of this disk with the same tokenizer, where there is one."""
    device: str = "auto"
    dtype: str = "auto"
    weights: str = "auto"
    threads: int = 0
    """CPU threads; 0 leaves the choice to the program."""
    allow_pickle: bool = False
    allow_remote_code: bool = False
    prompt: str = PROMPT
    ways: tuple[Way, ...] = WAYS
    seconds: float = 0.4
    """How long one repeat of a row takes, more or less."""
    repeats: int = 3

    def check(self) -> None:
        """Raises ParameterError; whether there are such models and kinds of weights is said by what loads them."""
        texts = {"model": self.model, "draft": self.draft, "device": self.device, "dtype": self.dtype,
                 "weights": self.weights, "prompt": self.prompt}  # fmt: skip
        for name, text in texts.items():
            check_text(name, text)
        check_bool("allow_pickle", self.allow_pickle)
        check_bool("allow_remote_code", self.allow_remote_code)
        check_integer("threads", self.threads, 0, MAX_THREADS)
        check_kind("ways", self.ways, (list, tuple), tr("Give a list of names."))
        for way in self.ways:
            check_one_of("ways", way, WAYS)
        check_number("seconds", self.seconds, 0, MAX_SECONDS)
        check_integer("repeats", self.repeats, 1, MAX_REPEATS)


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that is measured: `batch 8`, `weights int8`."""

    way: Way
    name: str


@dataclass(frozen=True, slots=True)
class Planned:
    """All rows there are, in the order they are measured."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Ground:
    """What everything is held against: the model as it is kept, and how quick this machine's memory is."""

    model: str
    device: str
    weights: str
    """What they are kept as: float32, int8 …"""
    weight_bytes: int
    bandwidth: float
    """Bytes a second of a block as large as the weights, read again and again."""
    threads: int
    tokens: int
    """Each text gets."""
    draft: str = ""
    """The model that drafts; empty for none."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A row is being measured from here on."""

    row: Row


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a row."""

    row: Row
    speeds: tuple[float, ...]
    """Tokens a second of each repeat, all texts together."""
    bytes: int
    """In memory: weights and cache; of several processes, the fullest one's weights."""
    limit: float
    """Tokens a second if reading the weights once for each pass were all the work."""
    texts: int = 1
    same: bool | None = None
    """Whether it wrote what the plain way writes; None where it need not."""
    per_pass: float | None = None
    """Tokens of one pass of the model, where drafts are checked."""
    foretold: float | None = None
    """Tokens a second that were said beforehand."""
    base: float = 0.0
    """Tokens a second of what it is held against; 0 for the row that others are held against."""
    against: tuple[float, ...] = ()
    """Of each repeat of what it is held against, where those were taken between its own: what disturbs one disturbs the
    other. Empty where the first row of its way stands for them."""

    @property
    def speed(self) -> float:
        """The median, all texts together."""
        return median(self.speeds)

    @property
    def each(self) -> float:
        """The median, of one text."""
        return self.speed / self.texts

    @property
    def ratio(self) -> float:
        """How many times as quick as what it is held against."""
        return self.speed / self.base if self.base else 1.0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that cannot be measured here, and why, in a sentence."""

    row: Row
    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """Everything has been measured."""

    seconds: float


Event = Planned | Ground | Begun | Measured | LeftOut | Done
EVENTS: tuple[type[Event], ...] = (Planned, Ground, Begun, Measured, LeftOut, Done)


class SpeedJob(msgspec.Struct, frozen=True):
    """What the process is asked, and the language it gives reasons in."""

    settings: Asked
    language: str


class MeasurementFailed(msgspec.Struct, frozen=True):
    """It could not go on: a DecodescopeError's words."""

    cause: str
    remedy: str
    details: str


LINES = JsonLines[Event | MeasurementFailed](*EVENTS, MeasurementFailed)
