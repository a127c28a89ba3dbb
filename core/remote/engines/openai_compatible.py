"""Any other engine with an OpenAI-compatible API."""

from __future__ import annotations

from decodescope.core.remote.engines.base import EngineKind
from decodescope.core.remote.engines.formats import (
    COUNT_PENALTIES,
    GRAMMAR,
    OPENAI_SETTINGS,
    SEVERAL_TEXTS,
    USAGE,
    response_format,
)

ENGINE = EngineKind(
    "other",
    "OpenAI-compatible",
    {**OPENAI_SETTINGS, **COUNT_PENALTIES, **SEVERAL_TEXTS, **GRAMMAR},
    USAGE,
    alternatives=5,
    chat_alternatives=20,
    chat_grammars={"json_schema": response_format},
    order=60,
)
