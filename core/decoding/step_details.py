"""A closer look at a step: its alternatives and its funnel, made of the step's figures when somebody asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from core.decoding.processor_pipeline import RAW_HEADING, StageHeading
from core.events import Alternative, Stage, StageDetail
from core.events.columns import Columns, mutable_builder
from core.models.text import TokenSpellings

if TYPE_CHECKING:
    from core.events import Alternative, StageDetail
    from core.events.columns import Values
    from core.events.tokens import StepDetailSource
    from core.models.text import TokenSpellings
    from core.processors.base import DetailFactory

FIXED_COLUMNS = 7
"""Figures every row begins with: raw and processed log-probability of the chosen token, how many tokens are likelier by
the model alone and after processing, negative entropy, varentropy, chosen token."""
STAGE_COLUMNS = 3
"""Survivors, mass and raw mass."""


def row_length(stages: int, top_n: int) -> int:
    """Figures of a row. Behind the fixed ones: ids, raw and, where there are stages, processed log-probabilities of the
    n likeliest; for each stage its three, ids and probabilities of its n likeliest; for the last one's likeliest the
    raw log-probability and how many tokens are likelier (-1 where it is among the n likeliest by the model alone)."""
    if not top_n:
        return FIXED_COLUMNS
    return FIXED_COLUMNS + 2 * top_n + (3 * top_n + stages * (STAGE_COLUMNS + 2 * top_n) if stages else 0)


FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(slots=True)
class StepRows:
    """Rows of the same layout (`core.decoding.step_details`), none of whose figures behind the fixed ones is no number."""

    values: FloatArray
    """[steps, `columns`]."""
    top_n: int
    headings: Sequence[StageHeading]
    probabilities: FloatArray
    """[steps, n]: probabilities of the likeliest by the model alone."""

    @property
    def tokens(self) -> FloatArray:
        """[steps, n]: the likeliest by the model alone."""
        return self.values[:, FIXED_COLUMNS : FIXED_COLUMNS + self.top_n]

    @property
    def raw_log_probabilities(self) -> FloatArray:
        """Their log-probabilities by the model alone."""
        return self.values[:, FIXED_COLUMNS + self.top_n : FIXED_COLUMNS + 2 * self.top_n]

    @property
    def log_probabilities(self) -> FloatArray:
        """And after processing."""
        return (
            self.values[:, FIXED_COLUMNS + 2 * self.top_n : FIXED_COLUMNS + 3 * self.top_n]
            if self.headings
            else self.raw_log_probabilities
        )

    @property
    def stages(self) -> FloatArray:
        """[steps, stages, figures of a stage]."""
        width, start = STAGE_COLUMNS + 2 * self.top_n, FIXED_COLUMNS + 3 * self.top_n
        end = start + width * len(self.headings)
        return self.values[:, start:end].reshape(len(self.values), len(self.headings), width)

    def has_others(self) -> BoolArray:
        """[steps]: whether alternatives are others than the likeliest by the model alone: the chosen token is none of
        them, or processing has brought tokens in."""
        n, chosen = self.top_n, self.values[:, FIXED_COLUMNS - 1 : FIXED_COLUMNS]
        others: BoolArray = ~(self.tokens == chosen).any(axis=1)
        if self.headings:
            shares, ahead = self.values[:, -3 * n : -2 * n], self.values[:, -n:]
            others |= ((ahead >= 0) & (shares > 0)).any(axis=1)
        return others


def combine_rows(rows: Sequence[Sequence[float]], top_n: int, names: Sequence[StageHeading]) -> StepRows | None:
    """The rows together; None where a figure of what is behind the fixed ones is no number."""
    figures = np.array(rows, dtype=np.float64)
    if np.isnan(figures[:, FIXED_COLUMNS:]).any():
        return None
    return StepRows(figures, top_n, names, _exact_exp(figures[:, FIXED_COLUMNS + top_n : FIXED_COLUMNS + 2 * top_n]))


def alternatives_to_columns(
    rows: StepRows, alternatives_of: Callable[[int], Sequence[Alternative]], pieces: TokenSpellings
) -> Columns:
    """Alternatives of all steps. `alternatives_of` makes those of one step: of the few that have others than the likeliest."""
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
    spelled = {token: pieces[token] for token in set(listed)}
    return Columns(lengths, {
        "id": tokens, "text": list(map(spelled.__getitem__, listed)),
        "raw_probability": column(rows.probabilities, "raw_probability"), "probability": _exact_exp(final),
        "raw_log_probability": column(rows.raw_log_probabilities, "raw_log_probability"), "log_probability": final,
        "rank": column(ranks, "rank").astype(np.int64),
        "degeneration_penalty": nothing, "score": nothing,
        "special": [token in pieces.special for token in listed],
    })  # fmt: skip


def stages_to_columns(
    rows: StepRows, survivors: Sequence[int], details: Sequence[dict[int, StageDetail | None]]
) -> Columns:
    """Funnels of all steps. `survivors`: of the model's own distribution; `details`: by place in the funnel."""
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
    kept = shares > 0
    told: list[StageDetail | None] = [None] * (steps * stages)
    for step, found in enumerate(details):
        for place, detail in found.items():
            told[step * stages + place] = detail
    heads = [RAW_HEADING, *rows.headings]
    said: dict[str | int, Values] = {
        name: [getattr(head, name) for head in heads] * steps for name in StageHeading._fields
    }
    return Columns(np.full(steps, stages), {
        **said, "detail": told, "survivors": sums[:, :, 0].ravel().astype(np.int64),
        "mass": np.minimum(sums[:, :, 1], 1.0).ravel(), "raw_mass": np.minimum(sums[:, :, 2], 1.0).ravel(),
        "top": Columns(kept.sum(axis=2).ravel(), {0: tokens[kept].astype(np.int64), 1: shares[kept]}),
    })  # fmt: skip


def _exact_exp(logs: FloatArray) -> FloatArray:
    """As `math.exp` has it, to the last bit: NumPy's own may differ from one machine to the next."""
    return np.array(list(map(math.exp, logs.ravel().tolist()))).reshape(logs.shape)


@dataclass(frozen=True, slots=True)
class StepDetails:
    """Alternatives and funnel that are there already."""

    kept: tuple[Alternative, ...] = ()
    stages: tuple[Stage, ...] = ()

    def alternatives(self) -> tuple[Alternative, ...]:
        """Of the step."""
        return self.kept

    def funnel(self) -> tuple[Stage, ...]:
        """Of the step."""
        return self.stages

    def details(self) -> tuple[StageDetail, ...]:
        """Of its stages."""
        return tuple([stage.detail for stage in self.stages if stage.detail is not None])

    def to_columns(self, steps: Sequence[StepDetailSource | None]) -> tuple[Columns, Columns] | None:
        """None: they are there one by one."""
        return None


@dataclass(slots=True)
class LazyStepDetails:
    """The figures of one text at one step, and what names them."""

    row: Sequence[float]
    """[`columns`]."""
    top_n: int
    headings: Sequence[StageHeading]
    pieces: TokenSpellings
    survivors: int
    """Tokens that the model itself leaves."""
    detail_factories: tuple[tuple[int, DetailFactory], ...] = ()
    """Who tells of a stage's detail, with its place in the funnel."""
    _stage_details: dict[int, StageDetail | None] | None = None

    def alternatives(self) -> tuple[Alternative, ...]:
        """The n likeliest by the model alone, those after processing, and the chosen one; by rank."""
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
        """(token, log-probability before and after processing, rank) of the likeliest after processing that are none of
        the likeliest before: only what changes the order of tokens brings any in."""
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
        """The model's own distribution, and what each stage leaves of it."""
        n, row = self.top_n, self.row
        ids, before = row[FIXED_COLUMNS : FIXED_COLUMNS + n], row[FIXED_COLUMNS + n : FIXED_COLUMNS + 2 * n]
        top = _token_probabilities(ids, list(map(math.exp, before)))
        opening = Stage(**RAW_HEADING._asdict(), survivors=self.survivors, mass=1.0, raw_mass=1.0, top=top)
        told = self._details()
        return (opening, *(self._stage(place, head, told.get(place)) for place, head in enumerate(self.headings, 1)))

    def details(self) -> tuple[StageDetail, ...]:
        """What its stages tell, in their order."""
        if not self.detail_factories:  # of most runs, none does
            return ()
        return tuple([detail for detail in self._details().values() if detail is not None])

    def _details(self) -> dict[int, StageDetail | None]:
        """By place in the funnel; told once, so that each is the same wherever it is met."""
        if self._stage_details is None:
            self._stage_details = {place: telling() for place, telling in self.detail_factories}
        return self._stage_details

    def to_columns(self, steps: Sequence[StepDetailSource | None]) -> tuple[Columns, Columns] | None:
        """Alternatives and funnels of steps of the same run; None where one of them is of another kind."""
        looks = [step for step in steps if isinstance(step, LazyStepDetails)]
        if len(looks) < len(steps) or not all(map(self._has_same_layout, looks)):
            return None
        rows = combine_rows([look.row for look in looks], self.top_n, self.headings)
        if rows is None:
            return None
        told = [look._details() if look.detail_factories else {} for look in looks]
        alternatives = alternatives_to_columns(rows, lambda step: looks[step].alternatives(), self.pieces)
        return alternatives, stages_to_columns(rows, [look.survivors for look in looks], told)

    def _has_same_layout(self, other: LazyStepDetails) -> bool:
        """Whether the rows of both hold the same."""
        return (
            other.pieces is self.pieces
            and other.top_n == self.top_n
            and (other.headings is self.headings or list(other.headings) == list(self.headings))
        )

    def _stage(self, place: int, head: StageHeading, told: StageDetail | None) -> Stage:
        n, width = self.top_n, STAGE_COLUMNS + 2 * self.top_n
        end = FIXED_COLUMNS + 3 * n + place * width
        survivors, mass, raw_mass = self.row[end - width : end - 2 * n]
        made = _OpenStage()
        made.name, made.label, made.value, made.kind, made.phrase = head
        made.survivors, made.mass, made.raw_mass = int(survivors), min(mass, 1.0), min(raw_mass, 1.0)
        made.top = _token_probabilities(self.row[end - 2 * n : end - n], self.row[end - n : end])
        made.detail = told
        made.__class__ = Stage
        closed: Stage = made
        return closed


def _rank(item: Alternative) -> int:
    return item.rank


def _token_probabilities(ids: Sequence[float], shares: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """(token, probability) of what has any; the shares fall."""
    pairs = zip(map(int, ids), shares, strict=True)
    return tuple(pairs) if shares[-1] > 0 else tuple([pair for pair in pairs if pair[1] > 0])


def build_alternative(token: int, raw: float, final: float, rank: int, pieces: TokenSpellings) -> Alternative:
    """An Alternative from its two log-probabilities."""
    made = _OpenAlternative()
    made.id, made.text, made.raw_probability, made.probability = token, pieces[token], math.exp(raw), math.exp(final)
    made.raw_log_probability, made.log_probability, made.rank = raw, final, rank
    made.degeneration_penalty = made.score = None
    made.special = token in pieces.special
    made.__class__ = Alternative
    closed: Alternative = made
    return closed


_OpenAlternative, _OpenStage = mutable_builder(Alternative), mutable_builder(Stage)
