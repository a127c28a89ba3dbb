"""The rows of many steps laid out in columns, without making any of their alternatives and stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from core.decoding.processor_pipeline import RAW_HEADING, StageHeading
from core.decoding.stats_row import FIXED_COLUMNS, STAGE_COLUMNS
from core.events.laid import Columns

if TYPE_CHECKING:
    from core.events import Alternative, StageDetail
    from core.events.laid import Values
    from core.models.text import TokenSpellings

FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
BoolArray: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(slots=True)
class StepRows:
    """Rows of the same layout (`core.decoding.stats_row`), none of whose figures behind the fixed ones is no number."""

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
