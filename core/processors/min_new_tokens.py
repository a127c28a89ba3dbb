"""Minimum number of new tokens: bans the end token before it."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import MinLengthBan, Processor, has_end
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="min_new_tokens",
    transformers_classes=("MinNewTokensLengthLogitsProcessor",),
    transformers_value="min_new_tokens",
    make=lambda value, context: MinLengthBan(context.start + value, context.eos),
    order=90,
    label=mark("at least {v}"),
    phrase=mark("the minimum of {v} new tokens"),
    plain_phrase=mark("the minimum length of the answer"),
    kind="ban",
    parameter=Parameter(
        "min_new_tokens", mark("At least"), "int", None,
        mark("The end token is banned until this many tokens are generated."),
        minimum=0, maximum=1_000_000, soft_maximum=400, step=1, advanced=True, unset=0,
    ),
    panel="length",
    shown=10,
    applies=has_end,
    score_rule="token",
)  # fmt: skip
