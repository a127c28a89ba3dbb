"""Bans repeating an n-gram."""

from __future__ import annotations

from decodescope.core.common.claim import GREEDY_CELL, Claim, greedy_cell
from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

CLAIMS = (
    Claim(
        name="trigram-ban-repeats-less",
        title=mark("Banning repeated trigrams reduces repetition"),
        plain=mark("A rule that no three words may occur twice keeps a text from repeating itself."),
        exact=mark("The share of repeated 4-grams is lower with greedy decoding and no "
            "repeated trigram than without the rule."),
        source="Paulus, Xiong, Socher 2017, A Deep Reinforced Model for Abstractive Summarization",
        address="https://arxiv.org/abs/1705.04304",
        baseline=GREEDY_CELL,
        tested=greedy_cell(mark("No repeated trigram"), no_repeat_ngram_size=3),
        measure="repetition", expects="lower", margin=0.05, max_new_tokens=160,
    ),
)  # fmt: skip

PROCESSOR = Processor(
    name="no_repeat_ngram_size",
    transformers_classes=("NoRepeatNGramLogitsProcessor",),
    transformers_value="ngram_size",
    make=lambda value, context: transformers_processors().NoRepeatNGramLogitsProcessor(value),
    order=50,
    label=mark("no {v}-gram twice"),
    phrase=mark("the ban on repeating any {v} tokens"),
    plain_phrase=mark("the rule “no repeated word sequences”"),
    claims=CLAIMS,
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
