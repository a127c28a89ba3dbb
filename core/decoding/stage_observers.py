"""What the stages of a step say of themselves beyond their survivors, put into its reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.decoding.step_details import LazyStepDetails
from core.decoding.step_stats import StepStats

if TYPE_CHECKING:
    import torch

    from core.processors.base import Witness


def with_details(
    reading: StepStats, scores: Sequence[torch.Tensor], row: int, witnesses: Sequence[Witness | None]
) -> StepStats:
    """The reading, which was made just now and is nobody else's yet, with the details of its last stages.

    `scores`: before the first stage and after each, [B, V]; `row`: whose reading it is; `witnesses`: of the last
    stages, one each.
    """
    look = reading.look
    if not isinstance(look, LazyStepDetails):
        return reading
    if any(witnesses):
        look.tellings = tuple(
            (place, witness(row, scores[place - 1][row], scores[place][row], reading.token))
            for place, witness in enumerate(witnesses, len(scores) - len(witnesses))
            if witness is not None
        )
    return reading
