"""Bans phrases from the text."""

from __future__ import annotations

from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="bad_words_ids",
    transformers_classes=("NoBadWordsLogitsProcessor",),
    make=lambda value, context: transformers_processors().NoBadWordsLogitsProcessor(value, context.eos),
    order=70,
    label=mark("banned words"),
    phrase=mark("the list of banned words"),
    plain_phrase=mark("the list of forbidden words"),
    kind="ban",
    parameter=Parameter(
        "bad_words_ids", mark("Banned phrases"), "tokens", None,
        mark("Phrases that must not appear, one per line, or lists of token ids."), form="phrases", advanced=True,
        group=WORDS,
    ),
    shown=20,
    score_rule="token",
)  # fmt: skip
