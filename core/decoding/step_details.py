"""Details of a step: alternatives and pipeline stages, created from its statistics on demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from decodescope.core.decoding.processor_pipeline import RAW_HEADING, StageHeading
from decodescope.core.events import Alternative, Stage, StageDetail
from decodescope.core.events.columns import Columns, mutable_builder
from decodescope.core.models.text import TokenSpellings

if TYPE_CHECKING:
    from decodescope.core.events import Alternative, StageDetail
    from decodescope.core.events.columns import Values
    from decodescope.core.events.tokens import StepDetailSource
    from decodescope.core.models.text import TokenSpellings
    from decodescope.core.processors.base import DetailFactory

FIXED_COLUMNS = 7
"""Number of leading values: raw and processed log-probability of the chosen token, number of more likely tokens before
and after processing, negative entropy, varentropy, chosen token.
"""
STAGE_COLUMNS = 3
"""Values per stage: survivors, mass and raw mass."""


def row_length(stages: int, top_n: int) -> int:
    """Return the number of values in a row.

    After the fixed values: ids, raw and (with stages) processed log-probabilities of the n most likely tokens; for each
    stage its three values, ids and probabilities of its n most likely tokens; for those of the last stage the raw
    log-probability and the number of more likely tokens (-1 where the token is among the n most likely ones of the
    model).
    """
    if not top_n:
        return FIXED_COLUMNS
    return FIXED_COLUMNS + 2 * top_n + (3 * top_n + stages * (STAGE_COLUMNS + 2 * top_n) if stages else 0)


FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(slots=True)
class StepRows:
    """Rows of the same layout (see `row_length`), without NaN after the fixed values."""

    values: FloatArray
    """[steps, `row_length`]."""
    top_n: int
    headings: Sequence[StageHeading]
    probabilities: FloatArray
    """[steps, n]: probabilities of the model's most likely tokens."""

    @property
    def tokens(self) -> FloatArray:
        """[steps, n]: the model's most likely tokens."""
        return self.values[:, FIXED_COLUMNS : FIXED_COLUMNS + self.top_n]

    @property
    def raw_log_probabilities(self) -> FloatArray:
        """[steps, n]: their raw log-probabilities."""
        return self.values[:, FIXED_COLUMNS + self.top_n : FIXED_COLUMNS + 2 * self.top_n]

    @property
    def log_probabilities(self) -> FloatArray:
        """[steps, n]: their processed log-probabilities."""
        return (
            self.values[:, FIXED_COLUMNS + 2 * self.top_n : FIXED_COLUMNS + 3 * self.top_n]
            if self.headings
            else self.raw_log_probabilities
        )

    @property
    def stages(self) -> FloatArray:
        """[steps, stages, values per stage]."""
        width, start = STAGE_COLUMNS + 2 * self.top_n, FIXED_COLUMNS + 3 * self.top_n
        end = start + width * len(self.headings)
        return self.values[:, start:end].reshape(len(self.values), len(self.headings), width)

    def has_others(self) -> BoolArray:
        """Return [steps]: whether alternatives include tokens other than the model's most likely ones: the chosen
        token, or tokens promoted by processing.
        """
        n, chosen = self.top_n, self.values[:, FIXED_COLUMNS - 1 : FIXED_COLUMNS]
        others: BoolArray = ~(self.tokens == chosen).any(axis=1)
        if self.headings:
            shares, ahead = self.values[:, -3 * n : -2 * n], self.values[:, -n:]
            others |= ((ahead >= 0) & (shares > 0)).any(axis=1)
        return others


def combine_rows(rows: Sequence[Sequence[float]], top_n: int, names: Sequence[StageHeading]) -> StepRows | None:
    """Combine rows; None if a value after the fixed ones is NaN."""
    figures = np.array(rows, dtype=np.float64)
    if np.isnan(figures[:, FIXED_COLUMNS:]).any():
        return None
    return StepRows(figures, top_n, names, _exact_exp(figures[:, FIXED_COLUMNS + top_n : FIXED_COLUMNS + 2 * top_n]))


def alternatives_to_columns(
    rows: StepRows, alternatives_of: Callable[[int], Sequence[Alternative]], pieces: TokenSpellings
) -> Columns:
    """Return the alternatives of all steps as columns. `alternatives_of` creates those of a step; used for the few
    steps with other tokens.
    """
    others = rows.has_others()
    made = [alternatives_of(step) for step in np.flatnonzero(others).tolist()]
    lengths = np.full(len(others), rows.top_n)
    lengths[others] = list(map(len, made))
    is_made = np.repeat(others, lengths)
    items, likely = list(chain.from_iterable(made)), ~others

    def column(values: FloatArray, name: str) -> FloatArray:
        found = np.empty(len(is_made))
        found[~is_made] = values[likely].ravel()
        found[is_made] = [getattr(item, name) for item in items]
        return found

    ranks = np.broadcast_to(np.arange(1.0, rows.top_n + 1), rows.tokens.shape)
    tokens = column(rows.tokens, "id").astype(np.int64)
    final = column(rows.log_probabilities, "log_probability")
    listed, nothing = tokens.tolist(), [None] * len(is_made)
    texts = {token: pieces[token] for token in set(listed)}
    return Columns(lengths, {
        "id": tokens, "text": list(map(texts.__getitem__, listed)),
        "raw_probability": column(rows.probabilities, "raw_probability"), "probability": _exact_exp(final),
        "raw_log_probability": column(rows.raw_log_probabilities, "raw_log_probability"), "log_probability": final,
        "rank": column(ranks, "rank").astype(np.int64),
        "degeneration_penalty": nothing, "score": nothing,
        "special": [token in pieces.special for token in listed],
    })  # fmt: skip


def stages_to_columns(
    rows: StepRows, survivors: Sequence[int], details: Sequence[dict[int, StageDetail | None]]
) -> Columns:
    """Return the pipeline stages of all steps as columns.

    `survivors`: tokens of the model's own distribution; `details`: by index of the stage.
    """
    steps, stages, n = len(rows.values), 1 + len(rows.headings), rows.top_n
    sums, tokens, shares = (np.ones((steps, stages, width)) for width in (STAGE_COLUMNS, n, n))
    sums[:, 0, 0], tokens[:, 0], shares[:, 0] = survivors, rows.tokens, rows.probabilities
    if rows.headings:
        of_stages = rows.stages
        sums[:, 1:] = of_stages[:, :, :STAGE_COLUMNS]
        tokens[:, 1:], shares[:, 1:] = (
            of_stages[:, :, STAGE_COLUMNS : STAGE_COLUMNS + n],
            of_stages[:, :, STAGE_COLUMNS + n :],
        )
    positive = shares > 0
    stage_details: list[StageDetail | None] = [None] * (steps * stages)
    for step, found in enumerate(details):
        for place, detail in found.items():
            stage_details[step * stages + place] = detail
    heads = [RAW_HEADING, *rows.headings]
    headings: dict[str | int, Values] = {
        name: [getattr(head, name) for head in heads] * steps for name in StageHeading._fields
    }
    return Columns(np.full(steps, stages), {
        **headings, "detail": stage_details, "survivors": sums[:, :, 0].ravel().astype(np.int64),
        "mass": np.minimum(sums[:, :, 1], 1.0).ravel(), "raw_mass": np.minimum(sums[:, :, 2], 1.0).ravel(),
        "top": Columns(positive.sum(axis=2).ravel(), {0: tokens[positive].astype(np.int64), 1: shares[positive]}),
    })  # fmt: skip


def _exact_exp(logs: FloatArray) -> FloatArray:
    """Apply `math.exp` for bit-exact results; NumPy's own may differ between machines."""
    return np.array(list(map(math.exp, logs.ravel().tolist()))).reshape(logs.shape)


@dataclass(frozen=True, slots=True)
class StepDetails:
    """Alternatives and stages that exist already."""

    existing_alternatives: tuple[Alternative, ...] = ()
    stages: tuple[Stage, ...] = ()

    def alternatives(self) -> tuple[Alternative, ...]:
        """Return the step's alternatives."""
        return self.existing_alternatives

    def funnel(self) -> tuple[Stage, ...]:
        """Return the step's stages."""
        return self.stages

    def details(self) -> tuple[StageDetail, ...]:
        """Return the details of its stages."""
        return tuple([stage.detail for stage in self.stages if stage.detail is not None])

    def to_columns(self, steps: Sequence[StepDetailSource | None]) -> tuple[Columns, Columns] | None:
        """Return None: there are no rows to convert."""
        return None


@dataclass(slots=True)
class LazyStepDetails:
    """Statistics of one sequence at one step, from which details are created on demand."""

    row: Sequence[float]
    """Values as in `row_length`."""
    top_n: int
    headings: Sequence[StageHeading]
    pieces: TokenSpellings
    survivors: int
    """Number of tokens with a finite raw score."""
    detail_factories: tuple[tuple[int, DetailFactory], ...] = ()
    """Factories of stage details, with the index of their stage."""
    _stage_details: dict[int, StageDetail | None] | None = None

    def alternatives(self) -> tuple[Alternative, ...]:
        """Return the model's n most likely tokens, those after processing, and the chosen one, by rank."""
        found = self._most_likely()
        known = {item.id for item in found}
        raw, final, above, _, _, _, token = self.row[:FIXED_COLUMNS]
        if int(token) not in known:
            found.append(self._alternative(int(token), raw, final, int(above) + 1))
            known.add(int(token))
        brought = [self._alternative(*figures) for figures in self._promoted_tokens() if figures[0] not in known]
        return tuple(sorted([*found, *brought], key=_rank) if brought else found)

    def _most_likely(self) -> list[Alternative]:
        n, row = self.top_n, self.row
        ids, before = row[FIXED_COLUMNS : FIXED_COLUMNS + n], row[FIXED_COLUMNS + n : FIXED_COLUMNS + 2 * n]
        after = row[FIXED_COLUMNS + 2 * n : FIXED_COLUMNS + 3 * n] if self.headings else before
        return [
            self._alternative(int(token), one, other, place)
            for place, (token, one, other) in enumerate(zip(ids, before, after, strict=True), 1)
        ]

    def _promoted_tokens(self) -> Iterator[tuple[int, float, float, int]]:
        """Yield (token, log-probability before and after processing, rank) of tokens among the most likely only after
        processing.

        There are none unless a stage changes the order of tokens.
        """
        if not self.headings:
            return
        n, row = self.top_n, self.row
        last = len(row) - 2 * n
        for place in range(n):
            share, above = row[last - n + place], row[last + n + place]
            if above >= 0 and share > 0:
                yield int(row[last - 2 * n + place]), row[last + place], math.log(share), int(above) + 1

    def _alternative(self, token: int, raw: float, final: float, rank: int) -> Alternative:
        return build_alternative(token, raw, final, rank, self.pieces)

    def funnel(self) -> tuple[Stage, ...]:
        """Return the model's own distribution and the stages."""
        n, row = self.top_n, self.row
        ids, before = row[FIXED_COLUMNS : FIXED_COLUMNS + n], row[FIXED_COLUMNS + n : FIXED_COLUMNS + 2 * n]
        top = _token_probabilities(ids, list(map(math.exp, before)))
        opening = Stage(**RAW_HEADING._asdict(), survivors=self.survivors, mass=1.0, raw_mass=1.0, top=top)
        details = self._details()
        return (opening, *(self._stage(place, head, details.get(place)) for place, head in enumerate(self.headings, 1)))

    def details(self) -> tuple[StageDetail, ...]:
        """Return the stage details in order."""
        if not self.detail_factories:  # most runs have none
            return ()
        return tuple([detail for detail in self._details().values() if detail is not None])

    def _details(self) -> dict[int, StageDetail | None]:
        """Return the details by stage index; created once, so that they are identical on every access."""
        if self._stage_details is None:
            self._stage_details = {place: telling() for place, telling in self.detail_factories}
        return self._stage_details

    def to_columns(self, steps: Sequence[StepDetailSource | None]) -> tuple[Columns, Columns] | None:
        """Return alternatives and stages of steps of the same run as columns; None if a step is of another kind."""
        looks = [step for step in steps if isinstance(step, LazyStepDetails)]
        if len(looks) < len(steps) or not all(map(self._has_same_layout, looks)):
            return None
        rows = combine_rows([look.row for look in looks], self.top_n, self.headings)
        if rows is None:
            return None
        details = [look._details() if look.detail_factories else {} for look in looks]
        alternatives = alternatives_to_columns(rows, lambda step: looks[step].alternatives(), self.pieces)
        return alternatives, stages_to_columns(rows, [look.survivors for look in looks], details)

    def _has_same_layout(self, other: LazyStepDetails) -> bool:
        """Return whether both rows have the same layout."""
        return (
            other.pieces is self.pieces
            and other.top_n == self.top_n
            and (other.headings is self.headings or list(other.headings) == list(self.headings))
        )

    def _stage(self, position: int, head: StageHeading, detail: StageDetail | None) -> Stage:
        n, width = self.top_n, STAGE_COLUMNS + 2 * self.top_n
        end = FIXED_COLUMNS + 3 * n + position * width
        survivors, mass, raw_mass = self.row[end - width : end - 2 * n]
        made = _OpenStage()
        made.name, made.label, made.value, made.phrase = head.name, head.label, head.value, head.phrase
        made.kind = head.kind  # which a heading may derive from scores
        made.survivors, made.mass, made.raw_mass = int(survivors), min(mass, 1.0), min(raw_mass, 1.0)
        made.top = _token_probabilities(self.row[end - 2 * n : end - n], self.row[end - n : end])
        made.detail = detail
        made.__class__ = Stage
        closed: Stage = made
        return closed


def _rank(item: Alternative) -> int:
    return item.rank


def _token_probabilities(ids: Sequence[float], shares: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """Return (token, probability) where the probability is positive; `shares` descend."""
    pairs = zip(map(int, ids), shares, strict=True)
    return tuple(pairs) if shares[-1] > 0 else tuple([pair for pair in pairs if pair[1] > 0])


def build_alternative(token: int, raw: float, final: float, rank: int, pieces: TokenSpellings) -> Alternative:
    """Create an Alternative from its two log-probabilities."""
    made = _OpenAlternative()
    made.id, made.text, made.raw_probability, made.probability = token, pieces[token], math.exp(raw), math.exp(final)
    made.raw_log_probability, made.log_probability, made.rank = raw, final, rank
    made.degeneration_penalty = made.score = None
    made.special = token in pieces.special
    made.__class__ = Alternative
    closed: Alternative = made
    return closed


_OpenAlternative, _OpenStage = mutable_builder(Alternative), mutable_builder(Stage)
