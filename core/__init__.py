"""Tokenscope's generation core: decode with any Hugging Face model and see every decision.

    model = core.load("storyteller")
    for event in core.stream(model, core.Request("Once upon a time")): ...

Importing this package is cheap; torch and transformers are imported by the first name that needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from core import caches, errors, events, strategies
from core.caches.prefixes.store import PrefixStore
from core.decoding.speculation.drafters.fit import why_not_draft
from core.explain import words
from core.explain.beams import explain_candidate
from core.explain.rounds import explain_draft, explain_round
from core.explain.sentence import Sentence
from core.explain.tokens import explain
from core.models import catalog
from core.request import Request

if TYPE_CHECKING:
    from core.decoding.prompt import encode
    from core.memory.estimate import Estimate, estimate
    from core.models.blueprint import blueprint
    from core.models.model import LoadedModel, load, wrap
    from core.running import Result, effective_settings, run, stream
    from core.settings import make_config

__all__ = [
    "Estimate",
    "LoadedModel",
    "PrefixStore",
    "Request",
    "Result",
    "Sentence",
    "blueprint",
    "caches",
    "catalog",
    "effective_settings",
    "encode",
    "errors",
    "estimate",
    "events",
    "explain",
    "explain_candidate",
    "explain_draft",
    "explain_round",
    "load",
    "make_config",
    "run",
    "strategies",
    "stream",
    "why_not_draft",
    "words",
    "wrap",
]

_HEAVY = {
    "Estimate": "core.memory.estimate",
    "blueprint": "core.models.blueprint",
    "encode": "core.decoding.prompt",
    "estimate": "core.memory.estimate",
    "LoadedModel": "core.models.model",
    "load": "core.models.model",
    "wrap": "core.models.model",
    "make_config": "core.settings",
    "Result": "core.running",
    "effective_settings": "core.running",
    "run": "core.running",
    "stream": "core.running",
}


def __getattr__(name: str) -> Any:
    if name not in _HEAVY:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HEAVY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
