"""What the stages of a step say of themselves beyond their survivors, put into its reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.decoding.step_details import LazyStepDetails
from core.decoding.step_stats import StepStats

if TYPE_CHECKING:
    import torch

    from core.processors.base import StageObserver


def add_stage_details(
    stats: StepStats, scores: Sequence[torch.Tensor], row: int, observers: Sequence[StageObserver | None]
) -> StepStats:
    """The reading, which was made just now and is nobody else's yet, with the details of its last stages.

    `scores`: before the first stage and after each, [B, V]; `row`: whose reading it is; `observers`: of the last
    stages, one each.
    """
    look = stats.details
    if not isinstance(look, LazyStepDetails):
        return stats
    if any(observers):
        look.detail_factories = tuple(
            (place, witness(row, scores[place - 1][row], scores[place][row], stats.token))
            for place, witness in enumerate(observers, len(scores) - len(observers))
            if witness is not None
        )
    return stats
