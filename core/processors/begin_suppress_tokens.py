"""Suppresses tokens at the start of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decodescope.core.parameter import WORDS, Parameter
from decodescope.core.processors.base import Context, Processor, transformers_processors
from decodescope.resources.language import mark

if TYPE_CHECKING:
    from decodescope.core.processors.base import Transform


def _make(value: Sequence[int], context: Context) -> Transform:
    shift = 1 if context.start <= 1 and context.settings.get("forced_bos_token_id") is not None else 0
    processor: Transform = transformers_processors().SuppressTokensAtBeginLogitsProcessor(
        value, context.start + shift, device=context.model.device
    )
    return processor


PROCESSOR = Processor(
    name="begin_suppress_tokens",
    transformers_classes=("SuppressTokensAtBeginLogitsProcessor",),
    make=_make,
    order=150,
    label=mark("not first {v}"),
    phrase=mark("the list of tokens suppressed at the start"),
    plain_phrase=mark("the list of words that may not come first"),
    kind="ban",
    parameter=Parameter(
        "begin_suppress_tokens", mark("Suppressed at the start"), "tokens", None,
        mark("Token ids that cannot be the first token."), advanced=True, group=WORDS,
    ),
    shown=50,
    score_rule="token",
)  # fmt: skip
