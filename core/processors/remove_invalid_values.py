"""Replaces NaN and infinity."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="remove_invalid_values",
    transformers_classes=("InfNanRemoveLogitsProcessor",),
    make=lambda value, context: transformers_processors().InfNanRemoveLogitsProcessor(),
    order=120,
    label=mark("repaired"),
    phrase=mark("the repair of invalid numbers"),
    plain_phrase=mark("the repair of invalid numbers"),
    parameter=Parameter(
        "remove_invalid_values", mark("Repair invalid numbers"), "bool", False,
        mark("Replace NaN and infinity in the model's output instead of stopping with an error."), advanced=True,
    ),
    shown=110,
    uses_scores_only=True,
    score_rule="token",
)  # fmt: skip
