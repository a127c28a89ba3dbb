"""The rows of many steps laid out in columns, without making any of their alternatives and stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from core.decoding.processor_pipeline import OPENING, StageHeading
from core.decoding.stats_row import FIXED, OF_STAGE
from core.events.laid import Laid

if TYPE_CHECKING:
    from core.events import Alternative, StageDetail
    from core.events.laid import Values
    from core.models.text import Pieces

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Truths: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(slots=True)
class StepRows:
    """Rows of the same layout (`core.decoding.stats_row`), none of whose figures behind the fixed ones is no number."""

    figures: Numbers
    """[steps, `columns`]."""
    top_n: int
    names: Sequence[StageHeading]
    shares: Numbers
    """[steps, n]: probabilities of the likeliest by the model alone."""

    @property
    def tokens(self) -> Numbers:
        """[steps, n]: the likeliest by the model alone."""
        return self.figures[:, FIXED : FIXED + self.top_n]

    @property
    def before(self) -> Numbers:
        """Their log-probabilities by the model alone."""
        return self.figures[:, FIXED + self.top_n : FIXED + 2 * self.top_n]

    @property
    def after(self) -> Numbers:
        """And after processing."""
        return self.figures[:, FIXED + 2 * self.top_n : FIXED + 3 * self.top_n] if self.names else self.before

    @property
    def stages(self) -> Numbers:
        """[steps, stages, figures of a stage]."""
        width, start = OF_STAGE + 2 * self.top_n, FIXED + 3 * self.top_n
        end = start + width * len(self.names)
        return self.figures[:, start:end].reshape(len(self.figures), len(self.names), width)

    def has_others(self) -> Truths:
        """[steps]: whether alternatives are others than the likeliest by the model alone: the chosen token is none of
        them, or processing has brought tokens in."""
        n, chosen = self.top_n, self.figures[:, FIXED - 1 : FIXED]
        others: Truths = ~(self.tokens == chosen).any(axis=1)
        if self.names:
            shares, ahead = self.figures[:, -3 * n : -2 * n], self.figures[:, -n:]
            others |= ((ahead >= 0) & (shares > 0)).any(axis=1)
        return others


def rows_of(rows: Sequence[Sequence[float]], top_n: int, names: Sequence[StageHeading]) -> StepRows | None:
    """The rows together; None where a figure of what is behind the fixed ones is no number."""
    figures = np.array(rows, dtype=np.float64)
    if np.isnan(figures[:, FIXED:]).any():
        return None
    return StepRows(figures, top_n, names, _exp(figures[:, FIXED + top_n : FIXED + 2 * top_n]))


def lay_alternatives(rows: StepRows, one: Callable[[int], Sequence[Alternative]], pieces: Pieces) -> Laid:
    """Alternatives of all steps. `one` makes those of one step: of the few that have others than the likeliest."""
    others = rows.has_others()
    made = [one(step) for step in np.flatnonzero(others).tolist()]
    lengths = np.full(len(others), rows.top_n)
    lengths[others] = list(map(len, made))
    is_made = np.repeat(others, lengths)
    items, likely = list(chain.from_iterable(made)), ~others

    def column(values: Numbers, name: str) -> Numbers:
        found = np.empty(len(is_made))
        found[~is_made] = values[likely].ravel()
        found[is_made] = [getattr(item, name) for item in items]
        return found

    ranks = np.broadcast_to(np.arange(1.0, rows.top_n + 1), rows.tokens.shape)
    tokens = column(rows.tokens, "id").astype(np.int64)
    final = column(rows.after, "log_probability")
    listed, nothing = tokens.tolist(), [None] * len(is_made)
    spelled = {token: pieces[token] for token in set(listed)}
    return Laid(lengths, {
        "id": tokens, "text": list(map(spelled.__getitem__, listed)),
        "raw_probability": column(rows.shares, "raw_probability"), "probability": _exp(final),
        "raw_log_probability": column(rows.before, "raw_log_probability"), "log_probability": final,
        "rank": column(ranks, "rank").astype(np.int64),
        "degeneration_penalty": nothing, "score": nothing,
        "special": [token in pieces.special for token in listed],
    })  # fmt: skip


def lay_funnels(rows: StepRows, survivors: Sequence[int], details: Sequence[dict[int, StageDetail | None]]) -> Laid:
    """Funnels of all steps. `survivors`: of the model's own distribution; `details`: by place in the funnel."""
    steps, stages, n = len(rows.figures), 1 + len(rows.names), rows.top_n
    sums, tokens, shares = (np.ones((steps, stages, width)) for width in (OF_STAGE, n, n))
    sums[:, 0, 0], tokens[:, 0], shares[:, 0] = survivors, rows.tokens, rows.shares
    if rows.names:
        of_stages = rows.stages
        sums[:, 1:] = of_stages[:, :, :OF_STAGE]
        tokens[:, 1:], shares[:, 1:] = of_stages[:, :, OF_STAGE : OF_STAGE + n], of_stages[:, :, OF_STAGE + n :]
    kept = shares > 0
    told: list[StageDetail | None] = [None] * (steps * stages)
    for step, found in enumerate(details):
        for place, detail in found.items():
            told[step * stages + place] = detail
    heads = [OPENING, *rows.names]
    said: dict[str | int, Values] = {
        name: [getattr(head, name) for head in heads] * steps for name in StageHeading._fields
    }
    return Laid(np.full(steps, stages), {
        **said, "detail": told, "survivors": sums[:, :, 0].ravel().astype(np.int64),
        "mass": np.minimum(sums[:, :, 1], 1.0).ravel(), "raw_mass": np.minimum(sums[:, :, 2], 1.0).ravel(),
        "top": Laid(kept.sum(axis=2).ravel(), {0: tokens[kept].astype(np.int64), 1: shares[kept]}),
    })  # fmt: skip


def _exp(logs: Numbers) -> Numbers:
    """As `math.exp` has it, to the last bit: NumPy's own may differ from one machine to the next."""
    return np.array(list(map(math.exp, logs.ravel().tolist()))).reshape(logs.shape)
