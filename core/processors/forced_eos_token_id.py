"""Forces the last token at the length limit."""

from __future__ import annotations

from decodescope.core.parameter import STOPPING, Parameter
from decodescope.core.processors.base import Processor, is_given, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="forced_eos_token_id",
    transformers_classes=("ForcedEOSTokenLogitsProcessor",),
    make=lambda value, context: transformers_processors().ForcedEOSTokenLogitsProcessor(
        context.max_length, value, device=context.model.device
    ),
    order=110,
    label=mark("forced last"),
    phrase=mark("the forced last token"),
    plain_phrase=mark("the fixed ending"),
    kind="ban",
    parameter=Parameter(
        "forced_eos_token_id", mark("Last token"), "tokens", None,
        mark("Id of the token written when the length limit is reached."), advanced=True, group=STOPPING,
    ),
    shown=90,
    is_on=is_given,
    applies=lambda context: context.settings.get("grammar") is None,  # an end in the middle would violate the grammar
    score_rule="token",
)  # fmt: skip
