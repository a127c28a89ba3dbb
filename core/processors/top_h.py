"""Top-H: keeps the likeliest tokens up to a fraction of the entropy."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, is_given, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="top_h",
    transformers_classes=("TopHLogitsWarper",),
    transformers_value="top_h",
    make=lambda value, context: transformers_processors().TopHLogitsWarper(top_h=value),
    order=170,
    label=mark("top-H {v}"),
    plain_phrase=mark("the rule “only so much uncertainty”"),
    kind="cut",
    parameter=Parameter(
        "top_h", mark("Top-H"), "float", None,
        mark("Keep the likeliest tokens until their entropy reaches this fraction of the full "
            "distribution's entropy."),
        minimum=0.0, maximum=1.0, step=0.01, exclusive=True, advanced=True,
    ),
    panel="sampling_advanced",
    shown=20,
    is_on=is_given,
    samples=True,
    uses_scores_only=True,
)  # fmt: skip
