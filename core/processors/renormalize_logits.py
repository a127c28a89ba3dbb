"""Renormalisation: the processed scores become a distribution again."""

from __future__ import annotations

from core.parameter import Parameter
from core.processors.base import Processor, transformers_processors
from resources.language import mark

PROCESSOR = Processor(
    name="renormalize_logits",
    make=lambda value, context: transformers_processors().LogitNormalization(),
    order=250,
    label=mark("renormalised"),
    parameter=Parameter(
        "renormalize_logits", mark("Renormalise"), "bool", False,
        mark("Make the processed scores a distribution again."), advanced=True,
    ),
    shown=120,
    blind=True,
    end="last",
)  # fmt: skip
