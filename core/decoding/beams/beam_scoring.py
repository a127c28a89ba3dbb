"""Log-probabilities of all beams through the funnel, group by group where the groups must differ.

As in transformers, the processors see log-probabilities here, not logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import torch

from core.decoding.processor_pipeline import ActiveStage, build_pipeline
from core.processors.base import Context


class ConstraintMask(NamedTuple):
    """What a form forbids behind one beam."""

    is_overruled: bool
    """Whether the model's first choice is forbidden."""
    first_choice: int
    log_probability: float
    """Of the first choice, by the model alone."""
    removed_probability: float
    """Share of the model's own distribution that is forbidden."""


class BeamScorer:
    """The funnel of a beam search: what all beams share, then diversity, then the rest for each group."""

    def __init__(self, context: Context, groups: int, penalty: float) -> None:
        self._penalty = penalty
        stages = build_pipeline(context).stages
        cut = len(stages)
        if groups > 1:
            cut = len(list(takewhile(lambda stage: stage.processor.before_diversity, stages)))
        self._shared_stages = stages[:cut]
        # Some processors remember their rows, so every group has its own.
        self._group_stages = [build_pipeline(context).stages[cut:] for _ in range(groups)] if groups > 1 else [[]]
        self._grammar_stages = [
            next((stage for stage in [*self._shared_stages, *own] if stage.processor.progress is not None), None)
            for own in self._group_stages
        ]

    @property
    def changes_scores(self) -> bool:
        """Whether anything changes log-probabilities, diversity included."""
        return bool(self._shared_stages or self._group_stages[0] or len(self._group_stages) > 1)

    def apply_shared(self, ids: torch.Tensor, log_probabilities: torch.Tensor) -> torch.Tensor:
        """[n, V] of all beams, before diversity; `ids` [n, T]."""
        return _apply_stages(self._shared_stages, ids, log_probabilities)

    def apply_group(
        self, group: int, ids: torch.Tensor, scores: torch.Tensor, counts: torch.Tensor | None
    ) -> torch.Tensor:
        """[m, V] of one group; `counts` [V]: how often earlier groups chose each token at this step."""
        if counts is not None and self._penalty:
            scores = scores - self._penalty * counts
        return _apply_stages(self._group_stages[group], ids, scores)

    def constraint_masks(self, group: int, ids: torch.Tensor, log_probabilities: torch.Tensor) -> list[ConstraintMask]:
        """What the form which texts are held to does to each row; nothing without one. `log_probabilities` [m, V]: log-probabilities
        of the model alone. The form has been asked about these texts at this step, and remembers."""
        form = self._grammar_stages[group]
        if form is None:
            return []
        best, left = log_probabilities.max(-1), form.process(ids, log_probabilities)
        gone = left.gather(-1, best.indices[:, None])[:, 0].isneginf() & best.values.isfinite()
        removed = log_probabilities.masked_fill(left.isfinite(), -float("inf")).exp().sum(-1)
        figures = (gone, best.indices, best.values, removed)
        return [ConstraintMask(*row) for row in zip(*(figure.tolist() for figure in figures), strict=True)]

    def diversity_penalties(self, counts: torch.Tensor | None) -> torch.Tensor | None:
        """What every token loses that earlier groups chose so often, [V]."""
        return None if counts is None else self._penalty * counts

    def reorder(self, rows: torch.Tensor, group_rows: Sequence[torch.Tensor]) -> None:
        """Beams have changed places: row i was row `rows[i]`; `group_rows` the same within each group."""
        _reorder_stages(self._shared_stages, rows)
        for stages, own in zip(self._group_stages, group_rows, strict=True):
            _reorder_stages(stages, own)


def _apply_stages(stages: Sequence[ActiveStage], ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    for stage in stages:
        scores = stage.process(ids, scores)
    return scores


def _reorder_stages(stages: Sequence[ActiveStage], rows: torch.Tensor) -> None:
    """Processors with a memory of their own go along."""
    for stage in stages:
        if stage.processor.follow is not None:
            stage.processor.follow(stage.process, rows)
