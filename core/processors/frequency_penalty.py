"""Frequency penalty: makes tokens less likely the more often the answer contains them."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import CountPenalty, Processor
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="frequency_penalty",
    make=lambda value, context: CountPenalty(value, context.start),
    order=42,
    label=mark("frequency {v}"),
    phrase=mark("the frequency penalty of {v}"),
    plain_phrase=mark("the penalty on often repeated words"),
    parameter=Parameter(
        "frequency_penalty", mark("Frequency penalty"), "float", 0.0,
        mark("Above 0, each token loses this much score for every time that the answer contains it. "
             "Below 0, it gains score. 0: off."),
        minimum=-2.0, maximum=2.0, step=0.05, option=True, advanced=True,
    ),
    panel="penalties",
    shown=12,
    score_rule="token",
)  # fmt: skip
