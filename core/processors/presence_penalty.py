"""Presence penalty: makes tokens less likely once the answer contains them."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import CountPenalty, Processor
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="presence_penalty",
    make=lambda value, context: CountPenalty(value, context.start, max_count=1),
    order=44,
    label=mark("presence {v}"),
    phrase=mark("the presence penalty of {v}"),
    plain_phrase=mark("the penalty on words used before"),
    parameter=Parameter(
        "presence_penalty", mark("Presence penalty"), "float", 0.0,
        mark("Above 0, each token that the answer contains loses this much score, however often it occurs. "
             "Below 0, it gains score. 0: off."),
        minimum=-2.0, maximum=2.0, step=0.05, option=True, advanced=True,
    ),
    panel="penalties",
    shown=14,
    score_rule="token",
)  # fmt: skip
