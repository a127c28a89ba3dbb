"""Renormalization: makes the processed scores log-probabilities."""

from __future__ import annotations

from decodescope.core.parameter import Parameter
from decodescope.core.processors.base import Processor, transformers_processors
from decodescope.resources.language import mark

PROCESSOR = Processor(
    name="renormalize_logits",
    transformers_classes=("LogitNormalization",),
    make=lambda value, context: transformers_processors().LogitNormalization(),
    order=250,
    label=mark("renormalized"),
    plain_phrase=mark("the renormalization"),
    parameter=Parameter(
        "renormalize_logits", mark("Renormalize"), "bool", False,
        mark("Turn the processed scores into a probability distribution again."), advanced=True,
    ),
    shown=120,
    uses_scores_only=True,
    end="last",
    score_rule="common",
)  # fmt: skip
