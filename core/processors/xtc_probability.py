"""XTC: now and then the likeliest tokens are taken away, so that the text leaves the well-worn path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.parameter import Parameter
from core.processors.base import Context, Processor
from resources.language import mark

if TYPE_CHECKING:
    import torch

    from core.processors.base import Transform

THRESHOLD = Parameter(
    "xtc_threshold", mark("XTC threshold"), "float", 0.1,
    mark("Of the tokens at least so likely, XTC takes away all but the least likely one."),
    minimum=0.0, maximum=1.0, soft_maximum=0.5, step=0.01, exclusive=True, option=True, advanced=True,
)  # fmt: skip


def above_threshold(scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Which tokens [B, V] XTC would take away: of those with p ≥ threshold all but the least likely one."""
    shares = scores.softmax(-1)
    high = shares >= threshold
    least = shares.masked_fill(~high, 2.0).argmin(-1, keepdim=True)
    return high.scatter(-1, least, False)


def make(value: float, context: Context) -> Transform:
    """With probability `value` at each step, unless the end token or a line break would go too (p-e-w 2024,
    text-generation-webui #6335)."""
    threshold = float(context.options.get(THRESHOLD.name, THRESHOLD.default))
    ends = set() if context.eos is None else set(context.eos.tolist())

    def is_spared(removed: torch.Tensor) -> bool:
        tokens: list[int] = removed.nonzero().flatten().tolist()
        return any(token in ends or b"\n" in (context.model.pieces.data(token) or b"") for token in tokens)

    def process(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        happens = context.dice(scores.shape[0]) < value
        gone = above_threshold(scores, threshold) & happens[:, None]
        for row in gone.any(-1).nonzero().flatten().tolist():
            if is_spared(gone[row]):
                gone[row] = False
        return scores.masked_fill(gone, -float("inf"))

    return process


PROCESSOR = Processor(
    name="xtc_probability",
    make=make,
    order=235,
    label=mark("XTC {v}"),
    kind="ban",
    parameter=Parameter(
        "xtc_probability", mark("XTC"), "float", 0.0,
        mark("How often the likeliest tokens are taken away (XTC, exclude top choices). 0 is never; 0.5 is usual."),
        minimum=0.0, maximum=1.0, step=0.05, option=True, advanced=True,
    ),
    beside=(THRESHOLD,),
    panel="sampling_advanced",
    shown=70,
    samples=True,
    blind=True,
    drafts=False,
)  # fmt: skip
