"""Top-k: keeps the k likeliest tokens."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="top_k",
    transformers_classes=("TopKLogitsWarper",),
    transformers_value="top_k",
    make=lambda value, context: transformers_processors().TopKLogitsWarper(
        top_k=value, min_tokens_to_keep=context.min_tokens_to_keep
    ),
    order=180,
    label=mark("top-k {v}"),
    plain_phrase=mark("the rule “only the best {v}”"),
    kind="cut",
    parameter=Parameter(
        "top_k", mark("Top-k"), "int", 50,
        mark("Keep only the k likeliest tokens. 0: off."),
        minimum=0, maximum=1_000_000, soft_maximum=100, step=1, unset=0,
    ),
    panel="sampling",
    shown=30,
    samples=True,
    uses_scores_only=True,
    score_rule="count",
)  # fmt: skip
