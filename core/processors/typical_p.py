"""Typical sampling: keeps the tokens whose surprise is closest to the average."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_below_one, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="typical_p",
    transformers_classes=("TypicalLogitsWarper",),
    transformers_value="mass",
    make=lambda value, context: transformers_processors().TypicalLogitsWarper(
        mass=value, min_tokens_to_keep=context.min_tokens_to_keep
    ),
    order=210,
    label=mark("typical {v}"),
    phrase=mark("typical sampling {v}"),
    plain_phrase=mark("the rule “nothing too obvious or too odd”"),
    kind="cut",
    parameter=Parameter(
        "typical_p", mark("Typical"), "float", 1.0,
        mark("Keep the tokens whose surprise is closest to the average, up to this total probability. 1: "
            "off."),
        minimum=0.0, maximum=1.0, step=0.01, exclusive=True, advanced=True,
    ),
    panel="sampling_advanced",
    shown=10,
    is_on=is_below_one,
    samples=True,
    uses_scores_only=True,
    score_rule="typical",
)  # fmt: skip
