"""Forces the first token."""

from __future__ import annotations

from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Processor, is_given, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="forced_bos_token_id",
    transformers_classes=("ForcedBOSTokenLogitsProcessor",),
    transformers_value="bos_token_id",
    make=lambda value, context: transformers_processors().ForcedBOSTokenLogitsProcessor(value),
    order=100,
    label=mark("forced first"),
    phrase=mark("the forced first token"),
    plain_phrase=mark("the fixed beginning"),
    kind="ban",
    parameter=Parameter(
        "forced_bos_token_id", mark("First token"), "int", None,
        mark("Id of the first generated token (translation models use it for the language)."),
        minimum=0, maximum=10_000_000, step=1, form="ids", advanced=True, group=WORDS,
    ),
    shown=80,
    is_on=is_given,
    score_rule="token",
)  # fmt: skip
