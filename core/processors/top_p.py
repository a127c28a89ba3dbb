"""Top-p (nucleus): keeps the likeliest tokens up to a total probability."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_below_one, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="top_p",
    transformers_classes=("TopPLogitsWarper",),
    transformers_value="top_p",
    make=lambda value, context: transformers_processors().TopPLogitsWarper(
        top_p=float(value), min_tokens_to_keep=context.min_tokens_to_keep
    ),
    order=190,
    label=mark("top-p {v}"),
    plain_phrase=mark("the rule “only the best, until their chances suffice”"),
    kind="cut",
    parameter=Parameter(
        "top_p", mark("Top-p"), "float", 1.0,
        mark("Keep the smallest set of likeliest tokens whose total probability reaches this value. 1: off."),
        minimum=0.0, maximum=1.0, step=0.01,
    ),
    panel="sampling",
    shown=20,
    is_on=is_below_one,
    samples=True,
    uses_scores_only=True,
    score_rule="mass",
)  # fmt: skip
