"""Narration of a tour step: its sentence, or the alternative if the effect does not appear."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from decodescope.app.features.tours.state.measures import MEASURES
from decodescope.app.features.tours.state.measures.measure import RELATIONS, TourNumber
from decodescope.app.features.tours.state.tour import LessonGuess, MeasureRef, TourCondition, TourStep
from decodescope.app.state.run import Run
from decodescope.core import words
from decodescope.resources.language import tr


@dataclass(frozen=True, slots=True)
class StepNarration:
    """A step's sentence, whether its effect appears, and the numbers it contains."""

    text: str
    effect_appears: bool
    numbers: Mapping[str, TourNumber]

    def index_of(self, name: str) -> int | None:
        """Return the number called `name` as the index of a token, node or round; None if it is missing."""
        value = self.numbers[name].value if name in self.numbers else None
        return int(value) if isinstance(value, int | float) else None


def narrate(step: TourStep, runs: Mapping[str, Run]) -> StepNarration:
    """Narrate a step in the current language. `runs` are the tour's runs so far, by name."""
    figures: dict[str, TourNumber] = {}
    for name, reference in step.figures.items():
        figures[name] = _compute_number(reference, runs, figures)
    appears = all(figure.value is not None for figure in figures.values()) and all(
        _is_fulfilled(condition, figures) for condition in step.when
    )
    words = {name: figure.text for name, figure in figures.items()}
    return StepNarration(tr(step.text if appears else step.otherwise).format(**words), appears, figures)


def _compute_number(reference: MeasureRef, runs: Mapping[str, Run], before: Mapping[str, TourNumber]) -> TourNumber:
    measure = MEASURES[reference.measure]
    names, others = reference.of[: measure.run_count], reference.of[measure.run_count :]
    if any(name not in runs for name in names):
        return TourNumber(None, measure.kind)
    values = [before[one].value if isinstance(one, str) and one in before else one for one in others]
    if any(value is None for value in values):
        return TourNumber(None, measure.kind)
    return TourNumber(measure.compute(*(runs[str(name)] for name in names), *values), measure.kind)


def _is_fulfilled(condition: TourCondition, figures: Mapping[str, TourNumber]) -> bool:
    left, right = (figures[side].value if isinstance(side, str) else side for side in (condition.left, condition.right))
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return False
    return RELATIONS[condition.relation](left, right)


class GuessResult(NamedTuple):
    """Verdict of a run on the choices of a guess."""

    answer: int | None
    """Index of the right choice; None if none of them is right."""
    shares: tuple[tuple[float, str], ...]
    """The model's probability of each choice and its text; empty where a figure decides."""


def evaluate_guess(guess: LessonGuess, runs: Mapping[str, Run]) -> GuessResult:
    """Return which choice is right by the runs of the lesson."""
    if guess.figure is not None:
        value = _compute_number(guess.figure, runs, {}).value
        number = float(value) if isinstance(value, int | float) else math.inf
        return GuessResult(sum(number >= bound for bound in guess.below), ())
    token = next(iter(runs[guess.run].tokens), None)
    if token is None:
        return GuessResult(None, ())
    known = {one.text: one.probability for one in token.alternatives} | {token.piece: token.probability}
    answer = guess.choices.index(token.piece) if token.piece in guess.choices else None
    shares = [(known[word], words.percent(known[word])) if word in known else (0.0, "–") for word in guess.choices]
    return GuessResult(answer, tuple(shares))
