"""Suppressed tokens: never written."""

from __future__ import annotations

from core.parameter import Parameter
from core.processors.base import Processor, library

PROCESSOR = Processor(
    name="suppress_tokens",
    make=lambda value, context: library().SuppressTokensLogitsProcessor(value, device=context.model.device),
    order=140,
    label="suppressed {v}",
    phrase="the list of suppressed tokens",
    kind="ban",
    parameter=Parameter(
        "suppress_tokens", "Suppressed tokens", "tokens", None,
        "Token ids that are never written.", advanced=True,
    ),
    shown=40,
    blind=True,
)  # fmt: skip
