"""Suppresses tokens."""

from __future__ import annotations

from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="suppress_tokens",
    transformers_classes=("SuppressTokensLogitsProcessor",),
    make=lambda value, context: transformers_processors().SuppressTokensLogitsProcessor(
        value, device=context.model.device
    ),
    order=140,
    label=mark("suppressed {v}"),
    phrase=mark("the list of suppressed tokens"),
    plain_phrase=mark("the list of words that are never written"),
    kind="ban",
    parameter=Parameter(
        "suppress_tokens",
        mark("Suppressed tokens"),
        "tokens",
        None,
        mark("Token ids that are never generated."),
        advanced=True,
        group=WORDS,
    ),
    shown=40,
    uses_scores_only=True,
    score_rule="token",
)
