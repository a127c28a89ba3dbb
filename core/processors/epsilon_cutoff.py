"""Epsilon cut-off: removes tokens below a fixed probability."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_inside_unit, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="epsilon_cutoff",
    transformers_classes=("EpsilonLogitsWarper",),
    transformers_value="epsilon",
    make=lambda value, context: transformers_processors().EpsilonLogitsWarper(
        epsilon=value, min_tokens_to_keep=context.min_tokens_to_keep
    ),
    order=220,
    label=mark("epsilon {v}"),
    plain_phrase=mark("the rule “nothing with almost no chance”"),
    kind="cut",
    parameter=Parameter(
        "epsilon_cutoff", mark("Epsilon cut-off"), "float", 0.0,
        mark("Remove every token with a lower probability than this. 0: off; 0.0003 to 0.0009 is usual."),
        minimum=0.0, maximum=1.0, soft_maximum=0.01, step=0.0001, advanced=True,
    ),
    panel="sampling_advanced",
    shown=30,
    is_on=is_inside_unit,
    samples=True,
    uses_scores_only=True,
    score_rule="probability",
)  # fmt: skip
