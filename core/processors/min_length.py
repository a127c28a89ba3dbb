"""Minimum length including the prompt: bans the end token before it."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Context, MinLengthBan, Processor, has_end
from decodescope.resources.language import mark


def _applies(context: Context) -> bool:
    """Return whether there is an end token and no minimum of new tokens, which takes precedence as in transformers."""
    return has_end(context) and context.settings.get("min_new_tokens") is None


PROCESSOR = Processor(
    name="min_length",
    transformers_classes=("MinLengthLogitsProcessor",),
    transformers_value="min_length",
    make=lambda value, context: MinLengthBan(value, context.eos),
    order=80,
    label=mark("min length {v}"),
    phrase=mark("the minimum length of {v}"),
    plain_phrase=mark("the minimum length of the text"),
    kind="ban",
    parameter=Parameter(
        "min_length", mark("Min length with prompt"), "int", 0,
        mark("The end token is banned until prompt and text together have this many tokens."),
        minimum=0, maximum=1_000_000, soft_maximum=400, step=1, advanced=True,
    ),
    panel="length",
    shown=20,
    applies=_applies,
    score_rule="token",
)  # fmt: skip
