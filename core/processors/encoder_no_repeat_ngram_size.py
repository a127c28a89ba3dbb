"""Bans copying an n-gram of the source."""

from __future__ import annotations

from decodescope.core.parameter import REPETITION, Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="encoder_no_repeat_ngram_size",
    transformers_classes=("EncoderNoRepeatNGramLogitsProcessor",),
    transformers_value="ngram_size",
    make=lambda value, context: transformers_processors().EncoderNoRepeatNGramLogitsProcessor(
        value, context.encoder_ids
    ),
    order=60,
    label=mark("no {v}-gram of the source"),
    phrase=mark("the ban on any {v} tokens of the source"),
    plain_phrase=mark("the rule “nothing copied from the source”"),
    kind="ban",
    parameter=Parameter(
        "encoder_no_repeat_ngram_size",
        mark("No n-gram of the prompt"),
        "int",
        0,
        mark("No sequence of this many tokens may be copied from the source text. 0: off."),
        minimum=0,
        maximum=1000,
        soft_maximum=10,
        step=1,
        advanced=True,
        group=REPETITION,
    ),
    shown=70,
    applies=lambda context: context.encoder_ids is not None,
    score_rule="token",
)
