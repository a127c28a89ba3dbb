"""Hurry to the end: the end token gains likelihood from some length on."""

from __future__ import annotations

from core.parameter import Parameter
from core.processors.base import Processor, has_end, is_given, transformers_processors
from resources.language import mark

PROCESSOR = Processor(
    name="exponential_decay_length_penalty",
    make=lambda value, context: transformers_processors().ExponentialDecayLengthPenalty(
        tuple(value), context.eos, context.start
    ),
    order=130,
    label=mark("hurry"),
    phrase=mark("the hurry to the end"),
    parameter=Parameter(
        "exponential_decay_length_penalty", mark("Hurry to the end"), "tokens", None,
        mark("[start, factor]: from that many new tokens on, the end token gains likelihood exponentially."),
        form="decay", advanced=True,
    ),
    shown=100,
    is_on=is_given,
    applies=has_end,
)  # fmt: skip
