"""Top-nσ: scores within a few standard deviations of the best one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor
from resources.language import mark

if TYPE_CHECKING:
    import torch

    from core.processors.base import Transform


def make(value: float, context: Context) -> Transform:
    """Scores below max − value · σ become −∞; σ is the deviation of all finite scores (Tang et al. 2024)."""

    def process(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        infinity = float("inf")
        finite = scores.isfinite()
        count = finite.sum(-1, keepdim=True).clamp(min=1)
        mean = scores.masked_fill(~finite, 0.0).sum(-1, keepdim=True) / count
        variance = (scores - mean).masked_fill(~finite, 0.0).square().sum(-1, keepdim=True) / count
        return scores.masked_fill(scores < scores.amax(-1, keepdim=True) - value * variance.sqrt(), -infinity)

    return process


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
)  # fmt: skip
