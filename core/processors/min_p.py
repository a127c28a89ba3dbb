"""Min-p: keeps tokens whose probability is at least a fraction of the likeliest token's."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="min_p",
    transformers_classes=("MinPLogitsWarper",),
    transformers_value="min_p",
    make=lambda value, context: transformers_processors().MinPLogitsWarper(
        min_p=float(value), min_tokens_to_keep=context.min_tokens_to_keep
    ),
    order=200,
    label=mark("min-p {v}"),
    plain_phrase=mark("the rule “nothing far behind the best”"),
    kind="cut",
    parameter=Parameter(
        "min_p", mark("Min-p"), "float", None,
        mark("Keep tokens whose probability is at least this fraction of the likeliest token's."),
        minimum=0.0, maximum=1.0, step=0.01, unset=0.0,
    ),
    panel="sampling",
    shown=40,
    samples=True,
    uses_scores_only=True,
    score_rule="ratio",
)  # fmt: skip
