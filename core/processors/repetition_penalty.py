"""Repetition penalty: makes tokens that occur in the text less likely."""

from __future__ import annotations

from decodescope.core.common.claim import GREEDY_CELL, Claim, greedy_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_not_one, transformers_processors
from decodescope.resources.language import mark

CLAIMS = (
    Claim(
        name="penalty-repeats-less",
        title=mark("A repetition penalty reduces repetition"),
        plain=mark("Making words less likely once they were used keeps a text from repeating itself."),
        exact=mark("The share of repeated 4-grams is lower with greedy decoding and a penalty of 1.2 than without it."),
        source="Keskar, McCann, Varshney, Xiong, Socher 2019, CTRL: A Conditional Transformer "
            "Language Model for Controllable Generation",
        address="https://arxiv.org/abs/1909.05858",
        baseline=GREEDY_CELL,
        tested=greedy_cell(mark("Penalty 1.2"), repetition_penalty=1.2),
        measure="repetition", expects="lower", margin=0.05, max_new_tokens=160,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="repetition_penalty",
    transformers_classes=("RepetitionPenaltyLogitsProcessor",),
    transformers_value="penalty",
    make=lambda value, context: transformers_processors().RepetitionPenaltyLogitsProcessor(float(value)),
    order=40,
    label=mark("repetition {v}"),
    phrase=mark("the repetition penalty of {v}"),
    plain_phrase=mark("the penalty on repeated words"),
    claims=CLAIMS,
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
