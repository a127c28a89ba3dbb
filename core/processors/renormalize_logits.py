"""Renormalisation: the processed scores become a distribution again."""

from __future__ import annotations

from core.parameter import Parameter
from core.processors.base import Processor, library

PROCESSOR = Processor(
    name="renormalize_logits",
    make=lambda value, context: library().LogitNormalization(),
    order=250,
    label="renormalised",
    parameter=Parameter(
        "renormalize_logits", "Renormalise", "bool", False,
        "Make the processed scores a distribution again.", advanced=True,
    ),
    shown=120,
    blind=True,
)  # fmt: skip
