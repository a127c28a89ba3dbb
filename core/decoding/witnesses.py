"""What the stages of a step say of themselves beyond their survivors, put into its reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.decoding.observe import Reading

if TYPE_CHECKING:
    import torch

    from core.processors.base import Witness


def with_details(
    reading: Reading, scores: Sequence[torch.Tensor], row: int, witnesses: Sequence[Witness | None]
) -> Reading:
    """The reading with the details of its last stages.

    `scores`: before the first stage and after each, [B, V]; `row`: whose reading it is; `witnesses`: of the last
    stages, one each.
    """
    if not any(witnesses) or not reading.funnel:
        return reading
    funnel, first = list(reading.funnel), len(reading.funnel) - len(witnesses)
    for place, witness in enumerate(witnesses, first):
        if witness is not None:
            told = witness(row, scores[place - 1][row], scores[place][row], reading.token)
            funnel[place] = replace(funnel[place], detail=told)
    return replace(reading, funnel=tuple(funnel))
