"""What a tour is: plain data, as its file says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from core.errors import DecodescopeError
from resources.language import mark

Waits = Literal["next", "time", "token"]
"""What a step goes on with beside the button Next: nothing, its time, a token that is picked."""
DEFAULT_SECONDS = 7.0
"""How long a step stands when a tour plays by itself and the step says nothing else."""


class TourError(DecodescopeError):
    """A tour cannot be read, or there is none of that name."""

    title = mark("There is no such tour")


@dataclass(frozen=True, slots=True)
class TourSetting:
    """What one run of a tour is set to."""

    model: str
    strategy: str
    prompt: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cache: str = "dynamic"
    cache_parameters: Mapping[str, Any] = field(default_factory=dict)
    drafts: tuple[str, ...] = ()
    seed: int = 0
    view: str = "tokens"


@dataclass(frozen=True, slots=True)
class MeasureRef:
    """A figure of a step: the measure's name, and what it is taken of (runs, earlier figures, plain values)."""

    measure: str
    of: tuple[str | float, ...] = ()


@dataclass(frozen=True, slots=True)
class TourCondition:
    """A figure beside another, or beside a number: the effect is there only if this holds."""

    left: str
    relation: str
    right: str | float


@dataclass(frozen=True, slots=True)
class TourStep:
    """One sentence of a tour, what it points at, and what is done for it."""

    text: str
    """A template; its placeholders are the names of figures."""
    otherwise: str = ""
    """What is said where the effect does not appear."""
    notes: str = ""
    """For whoever presents."""
    points: str = ""
    """The name of an object, or of a part of the running program (`app.control.tours.tour_ui`)."""
    run: str = ""
    """Which of the tour's runs is shown; it is made when it is first wanted. Empty: the one before."""
    figures: Mapping[str, MeasureRef] = field(default_factory=dict)
    when: tuple[TourCondition, ...] = ()
    view: str = ""
    cursor: str = ""
    """The figure that says how far the text is drawn; empty for all of it."""
    token: str = ""
    """The figure that says which token is selected."""
    node: str = ""
    """The figure that says which node of the shown tree is."""
    round: str = ""
    """The figure that says which round of drafts is shown."""
    waits: Waits = "next"
    seconds: float = DEFAULT_SECONDS


@dataclass(frozen=True, slots=True)
class Tour:
    """A scene: its runs by name, and its steps in order."""

    name: str
    title: str
    about: str
    order: int
    runs: Mapping[str, TourSetting]
    steps: tuple[TourStep, ...]

    def run_of(self, index: int) -> str:
        """The name of the run that the step at that place speaks of; empty before the first."""
        return next((step.run for step in reversed(self.steps[: index + 1]) if step.run), "")

    @property
    def seconds(self) -> float:
        """How long it takes by itself, its runs left out."""
        return sum(step.seconds for step in self.steps)
