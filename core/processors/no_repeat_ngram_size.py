"""Bans repeating an n-gram."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="no_repeat_ngram_size",
    transformers_classes=("NoRepeatNGramLogitsProcessor",),
    transformers_value="ngram_size",
    make=lambda value, context: transformers_processors().NoRepeatNGramLogitsProcessor(value),
    order=50,
    label=mark("no {v}-gram twice"),
    phrase=mark("the ban on repeating any {v} tokens"),
    plain_phrase=mark("the rule “no repeated word sequences”"),
    kind="ban",
    parameter=Parameter(
        "no_repeat_ngram_size", mark("No repeated n-gram"), "int", 0,
        mark("No sequence of this many tokens may occur twice. 0: off."),
        minimum=0, maximum=1000, soft_maximum=10, step=1,
    ),
    panel="penalties",
    shown=20,
    score_rule="token",
)  # fmt: skip
