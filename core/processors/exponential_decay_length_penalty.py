"""Raises the end token's score exponentially from a given length on."""

from __future__ import annotations

from decodescope.core.parameter import STOPPING, Parameter
from decodescope.core.processors.base import Processor, has_end, is_given, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="exponential_decay_length_penalty",
    transformers_classes=("ExponentialDecayLengthPenalty",),
    make=lambda value, context: transformers_processors().ExponentialDecayLengthPenalty(
        tuple(value), context.eos, context.start
    ),
    order=130,
    label=mark("decay"),
    phrase=mark("the exponential length penalty"),
    plain_phrase=mark("the growing push to end"),
    parameter=Parameter(
        "exponential_decay_length_penalty", mark("Length decay"), "tokens", None,
        mark("[start, factor]: after this many new tokens, the end token's score rises exponentially."),
        form="decay", advanced=True, group=STOPPING,
    ),
    shown=100,
    is_on=is_given,
    applies=has_end,
    score_rule="token",
)  # fmt: skip
