"""Near misses of a greedy text: the words that another precision or cache would write otherwise.

The prediction needs the margins of the text's own choices, and the spread of margins between both sides on another
text, which is sampled from the model. Then the other side reads the text, which shows the hits.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from decodescope.core import strategies
from decodescope.core.checks.arguments import cancel_event_or_new, check_integer
from decodescope.core.decoding.keyed_noise import FloatArray
from decodescope.core.decoding.text_scoring import comparison_unsupported_reason
from decodescope.core.differences.text_reading import final_scores
from decodescope.core.errors import ComparisonError, ParameterError, StrategyError
from decodescope.core.generation.running import run
from decodescope.core.models.loaded_model import LoadedModel, check_model
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.core.parameter import Settings
from decodescope.core.request import Request, check_request
from decodescope.core.settings import resolve_settings
from decodescope.resources.language import join_sentences, tr, trn

MIN_PROBABILITY = 0.01
"""Predicted probability from which a word counts as a near miss."""
MAX_CALIBRATION_TOKENS = 4096
_RIVALS = 5
"""Likeliest tokens whose margins are compared at each step of the sampled text."""


class NearMiss(NamedTuple):
    """A word of the greedy text."""

    position: int
    id: int
    text: str
    rival_id: int
    """The second likeliest token."""
    rival_text: str
    margin: float
    """ln p(token) − ln p(rival) after all settings, in nats."""
    probability: float
    """Predicted probability that the other side chooses another token here."""
    flips: bool | None
    """Whether it does, after the same text; None if it was not run."""
    other_text: str
    """What it chooses; empty if it was not run."""


class NearMisses(ResultRows[NearMiss]):
    """All words of a greedy text, in order."""

    bar = "probability"
    spread: float
    """Root mean square of the shift of margins on the sampled text, in nats."""
    calibration_tokens: int
    """Length of the sampled text."""

    @property
    def predicted(self) -> list[NearMiss]:
        """The words that may differ, the likeliest first."""
        found = [row for row in self if row.probability >= MIN_PROBABILITY]
        return sorted(found, key=lambda row: (-row.probability, row.position))

    @property
    def expected(self) -> float:
        """Expected number of differing words."""
        return sum(row.probability for row in self)

    @property
    def hits(self) -> list[NearMiss]:
        """The words that differ."""
        return [row for row in self if row.flips]

    @property
    def first_difference(self) -> int | None:
        """Position of the first differing word: there, a run of its own writes another text."""
        return next((row.position for row in self if row.flips), None)

    @property
    def sentence(self) -> str:
        """The result in a sentence or two."""
        first = trn(
            "{count:,} word is a near miss; {expected:.1f} are expected to differ.",
            "{count:,} words are near misses; {expected:.1f} are expected to differ.", len(self.predicted),
        ).format(count=len(self.predicted), expected=self.expected)  # fmt: skip
        if any(row.flips is None for row in self):
            return first
        foreseen = sum(row.probability >= MIN_PROBABILITY for row in self.hits)
        second = trn("{count:,} word differs, {foreseen:,} of them foreseen.",
            "{count:,} words differ, {foreseen:,} of them foreseen.", len(self.hits))  # fmt: skip
        return join_sentences(first, second.format(count=len(self.hits), foreseen=foreseen))

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {name: [getattr(row, name) for row in self] for name in NearMiss._fields}


def near_misses(
    model: LoadedModel, request: Request, other: LoadedModel | None = None, *, cache: str | None = None,
    cache_options: Settings | None = None, calibration_tokens: int = 64, runs: bool = True,
    cancel: threading.Event | None = None, progress: Callable[[str], None] | None = None,
) -> NearMisses:  # fmt: skip
    """Return the words of a greedy text that `other`, the same model in another precision, or another cache would
    write otherwise: predicted, and with `runs` also found by reading the text there.

    `calibration_tokens` is the length of the sampled text on which the spread is measured. Raises ParameterError if
    nothing differs between the sides, StrategyError for requests that are not greedy, ComparisonError for models of
    other tokens, and the errors of `stream`.
    """
    check_model(model)
    check_request(request)
    check_integer("calibration_tokens", calibration_tokens, 8, MAX_CALIBRATION_TOKENS)
    cancel, report = cancel_event_or_new(cancel), progress or (lambda _sentence: None)
    second = _other_side(model, request, other, cache, cache_options)
    if resolve_settings(model, request)[0] is not strategies.select(None, {}):
        raise StrategyError(
            tr("Near misses are words of a greedy text."), tr("Leave do_sample off, and pass no strategy.")
        )
    report(tr("Writing the text"))
    ids = run(model, request, cancel).sequences[0]
    report(tr("Measuring the spread on a sampled text"))
    shifts, count = _measure(model, request, second, calibration_tokens, cancel)
    own = list(final_scores(model, request, ids, cancel))
    choices: list[int | None] = [None] * len(own)
    if runs:
        report(tr("Reading the text with the other side"))
        found = [int(scores.argmax()) for scores in final_scores(*second, ids, cancel)]
        choices[: len(found)] = found
    result = NearMisses(_rows(model, ids, own, choices, shifts))
    result.spread = float(np.sqrt(np.mean(np.square(shifts)))) if len(shifts) else 0.0
    result.calibration_tokens = count
    return result


def _other_side(
    model: LoadedModel, request: Request, other: LoadedModel | None, cache: str | None, options: Settings | None
) -> tuple[LoadedModel, Request]:
    changed = request if cache is None else replace(request, cache=cache, cache_options=dict(options or {}))
    if other is None and (changed.cache, changed.cache_options) == (request.cache, request.cache_options):
        remedy = tr("Pass another model, or the name of another cache.")
        raise ParameterError(tr("Nothing differs between the two sides."), remedy, "other")
    if other is None:
        return model, changed
    check_model(other)
    if reason := comparison_unsupported_reason(model, other):
        raise ComparisonError(reason, tr("Pass the same model in another precision."))
    return other, changed


def _measure(
    model: LoadedModel, request: Request, second: tuple[LoadedModel, Request], count: int, cancel: threading.Event
) -> tuple[FloatArray, int]:
    """Return the shifts of margins [n] on a sampled text, and its length in tokens."""
    settings: Settings = {"do_sample": True, "temperature": 1.0, "top_k": 0, "max_new_tokens": count}
    ids = run(model, replace(request, config=settings, options={}, strategy=None, seed=request.seed + 1)).sequences[0]
    sides = [final_scores(one, each, ids, cancel) for one, each in ((model, request), second)]
    found: list[float] = []
    for ours, theirs in zip(*sides, strict=True):
        likely = np.argsort(-ours, kind="stable")[: _RIVALS + 1]
        before, after = (scores[likely[0]] - scores[likely[1:]] for scores in (ours, theirs))
        found += [float(shift) for shift in after - before if math.isfinite(shift)]
    return np.array(found), len(ids)


def _rows(
    model: LoadedModel, ids: Sequence[int], own: Sequence[FloatArray], choices: Sequence[int | None],
    shifts: FloatArray,
) -> Iterator[NearMiss]:  # fmt: skip
    texts = model.pieces.texts(ids)
    for position, (scores, choice) in enumerate(zip(own, choices, strict=True)):
        token = ids[position]
        others = scores.copy()
        others[token] = -np.inf
        rival = int(others.argmax())
        margin = float(scores[token] - scores[rival])
        yield NearMiss(
            position, token, texts[position], rival, model.pieces[rival], margin, flip_probability(margin, shifts),
            None if choice is None else choice != token, "" if choice is None else model.pieces[choice],
        )  # fmt: skip


def flip_probability(margin: float, shifts: FloatArray) -> float:
    """Return the probability that a shift like one of `shifts` [n], with either sign, turns a margin over.

    The larger one of the fraction of shifts that suffice, and of the normal distribution with their mean square, which
    also has a tail beyond the largest of them.
    """
    if not len(shifts) or not math.isfinite(margin):
        return 0.0
    observed = float(np.mean(np.abs(shifts) >= margin)) / 2
    deviation = float(np.sqrt(np.mean(np.square(shifts))))
    normal = math.erfc(margin / (deviation * math.sqrt(2))) / 2 if deviation > 0 else 0.0
    return max(observed if deviation > 0 else 0.0, normal)
