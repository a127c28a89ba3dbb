"""Data model of a tour, as in its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import mark

Waits = Literal["next", "time", "token"]
"""What, besides the Next button, makes a step advance: nothing, its duration, or a selected token."""
DEFAULT_SECONDS = 7.0
"""Default duration of a step when a tour plays automatically."""


class TourError(DecodescopeError):
    """A tour cannot be read or does not exist."""

    title = mark("This tour does not exist")


@dataclass(frozen=True, slots=True)
class TourSetting:
    """Settings of one run of a tour."""

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
    """A number of a step: the measure's name and its arguments (runs, earlier numbers, plain values)."""

    measure: str
    of: tuple[str | float, ...] = ()


@dataclass(frozen=True, slots=True)
class TourCondition:
    """A comparison of a number with another number; the effect appears only if it holds."""

    left: str
    relation: str
    right: str | float


@dataclass(frozen=True, slots=True)
class LessonGuess:
    """The guess of a lesson: four choices, and what decides which of them is right.

    With `words`, the choices are tokens that may follow the prompt: the right one is the first token of the run, and
    the model's probability of each is known. Otherwise the run's `figure` decides: each choice but the last is right
    below its number in `below`; the last one also where the run lacks the figure.
    """

    question: str
    choices: tuple[str, ...]
    """Texts to translate, or with `words` the tokens themselves."""
    run: str
    words: bool = False
    figure: MeasureRef | None = None
    below: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TourStep:
    """A step of a tour: its sentence, what it points at, and what is shown."""

    text: str
    """Template; its placeholders are names of numbers."""
    otherwise: str = ""
    """Text if the effect does not appear."""
    notes: str = ""
    """Notes for the presenter."""
    points: str = ""
    """Name of an object or of a part of the running program (`app.features.tours.controller.tour_ui`)."""
    run: str = ""
    """The tour's run to show, created when first needed. Empty for that of the previous step."""
    figures: Mapping[str, MeasureRef] = field(default_factory=dict)
    when: tuple[TourCondition, ...] = ()
    view: str = ""
    cursor: str = ""
    """Name of the number that sets the cursor; empty for the whole text."""
    token: str = ""
    """Name of the number that selects the token."""
    node: str = ""
    """Name of the number that selects the node of the shown tree."""
    round: str = ""
    """Name of the number that selects the draft round."""
    waits: Waits = "next"
    seconds: float = DEFAULT_SECONDS
    stage: str = ""
    """Part of a lesson, as a text to translate; empty in a tour."""
    guess: LessonGuess | None = None
    """The guess that this step of a lesson requests, or whose result it shows."""
    asks: bool = False
    """Whether the step requests its guess instead of showing the result."""


@dataclass(frozen=True)
class Tour:
    """A tour: its runs by name and its steps in order."""

    name: str
    title: str
    about: str
    order: int
    runs: Mapping[str, TourSetting]
    steps: tuple[TourStep, ...]

    def run_of(self, index: int) -> str:
        """Return the name of the run shown by the step at this index; empty before the first run."""
        return next((step.run for step in reversed(self.steps[: index + 1]) if step.run), "")

    @property
    def seconds(self) -> float:
        """Duration when played automatically, without its runs."""
        return sum(step.seconds for step in self.steps)


class HomeQuestion(NamedTuple):
    """A question to take home, with the answer for the teacher."""

    question: str
    answer: str


@dataclass(frozen=True)
class Lesson(Tour):
    """A lesson of ten minutes: a tour that begins with a question and a guess, and ends with questions to take home."""

    question: str = ""
    home: tuple[HomeQuestion, ...] = ()
