"""What the stages of a step say of themselves beyond their survivors, put into its reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.decoding.observe import Reading

if TYPE_CHECKING:
    import torch

    from core.processors.base import Witness


def with_details(
    reading: Reading, scores: Sequence[torch.Tensor], row: int, witnesses: Sequence[Witness | None]
) -> Reading:
    """The reading, which was made just now and is nobody else's yet, with the details of its last stages.

    `scores`: before the first stage and after each, [B, V]; `row`: whose reading it is; `witnesses`: of the last
    stages, one each.
    """
    if not reading.funnel:
        return reading
    for place, witness in enumerate(witnesses, len(reading.funnel) - len(witnesses)):
        if witness is not None:
            told = witness(row, scores[place - 1][row], scores[place][row], reading.token)
            # To make stage and reading once more would take longer than most of what is told.
            object.__setattr__(reading.funnel[place], "detail", told)
    return reading
