"""Repetition penalty: makes tokens that occur in the text less likely."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_not_one, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="repetition_penalty",
    transformers_classes=("RepetitionPenaltyLogitsProcessor",),
    transformers_value="penalty",
    make=lambda value, context: transformers_processors().RepetitionPenaltyLogitsProcessor(float(value)),
    order=40,
    label=mark("repetition {v}"),
    phrase=mark("the repetition penalty of {v}"),
    plain_phrase=mark("the penalty on repeated words"),
    parameter=Parameter(
        "repetition_penalty", mark("Repetition penalty"), "float", 1.0,
        mark("Above 1, tokens already in the text become less likely. 1: off."),
        minimum=0.0, maximum=100.0, soft_maximum=2.0, step=0.01, exclusive=True,
    ),
    panel="penalties",
    shown=10,
    is_on=is_not_one,
    score_rule="token",
)  # fmt: skip
