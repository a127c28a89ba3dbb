"""Top-nσ: scores within a few standard deviations of the best one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor
from resources.language import mark

if TYPE_CHECKING:
    import torch

    from core.events import StageDetail
    from core.processors.base import Witness


PARTS = 32
"""Of the histogram that a picture shows."""


def _deviation(scores: torch.Tensor) -> torch.Tensor:
    """σ [B, 1] of the finite ones of scores [B, V]: at once where all are, which is nearly always."""
    deviation = scores.std(-1, correction=0, keepdim=True)
    if all(math.isfinite(one) for (one,) in deviation.tolist()):
        return deviation
    finite = scores.isfinite()
    count = finite.sum(-1, keepdim=True).clamp(min=1)
    mean = scores.masked_fill(~finite, 0.0).sum(-1, keepdim=True) / count
    return ((scores - mean).masked_fill(~finite, 0.0).square().sum(-1, keepdim=True) / count).sqrt()


def _counts(scores: torch.Tensor, lowest: float, highest: float) -> tuple[int, ...]:
    """How many of the scores [n] stand in each of PARTS equal parts of their range; NumPy counts small whole numbers in
    a third of the time that torch takes for a histogram."""
    import numpy as np

    width = highest - lowest or 1.0
    parts = (scores.float().cpu().numpy() - lowest) * (PARTS / width)
    counts = np.bincount(parts.astype(np.uint8), minlength=PARTS + 1).tolist()
    return (*counts[: PARTS - 1], counts[PARTS - 1] + counts[PARTS])  # the highest is the last part's


class WithinSigma:
    """Scores below max − n · σ become −∞; σ is the deviation of all finite scores (Tang et al. 2024)."""

    def __init__(self, width: float) -> None:
        self._width = width
        self._best: torch.Tensor | None = None
        self._deviation: torch.Tensor | None = None

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [B, V] without those too far below the best."""
        self._best, self._deviation = scores.amax(-1, keepdim=True), _deviation(scores)
        return scores.masked_fill(scores < self._best - self._width * self._deviation, -float("inf"))

    def witness(self) -> Witness:
        """Of the scores at this step."""
        best, deviation = self._best, self._deviation

        from core.events import ScoreSpread, StageDetail  # made when something runs

        def tell(row: int, before: torch.Tensor, after: torch.Tensor, chosen: int) -> StageDetail | None:
            assert best is not None
            assert deviation is not None
            top, spread = best.tolist()[row][0], deviation.tolist()[row][0]
            if not math.isfinite(top):
                return None
            known, lowest = before, float(before.amin())
            if not math.isfinite(lowest):
                known = before[before.isfinite()]
                lowest = float(known.amin())
            floor = top - self._width * spread
            return StageDetail(spread=ScoreSpread(top, spread, floor, lowest, _counts(known, lowest, top)))

        return tell


def make(value: float, context: Context) -> WithinSigma:
    """The cut of one run."""
    return WithinSigma(float(value))


PROCESSOR = Processor(
    name="top_n_sigma",
    make=make,
    order=158,
    label=mark("top-nσ {v}"),
    kind="cut",
    parameter=Parameter(
        "top_n_sigma", mark("Top-nσ"), "float", None,
        mark("Keep tokens whose score is within this many standard deviations of the best. It looks at the scores "
             "before the temperature, so heat does not let more through."),
        minimum=0.0, maximum=100.0, soft_maximum=4.0, step=0.1, exclusive=True, option=True, advanced=True,
    ),
    panel="sampling_advanced",
    shown=50,
    samples=True,
    blind=True,
    witness=WithinSigma.witness,
)  # fmt: skip
