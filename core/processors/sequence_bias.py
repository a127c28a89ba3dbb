"""Sequence bias: makes phrases more or less likely."""

from __future__ import annotations

from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="sequence_bias",
    transformers_classes=("SequenceBiasLogitsProcessor",),
    make=lambda value, context: transformers_processors().SequenceBiasLogitsProcessor(sequence_bias=value),
    order=20,
    label=mark("sequence bias"),
    phrase=mark("the sequence bias"),
    plain_phrase=mark("the list of preferred and unwanted words"),
    parameter=Parameter(
        "sequence_bias", mark("Sequence bias"), "tokens", None,
        mark("Make phrases more or less likely: a list of [[token ids], bias]."), form="biases", advanced=True,
        group=WORDS,
    ),
    shown=30,
    before_diversity=True,
    score_rule="token",
)  # fmt: skip
