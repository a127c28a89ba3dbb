"""Serve a model with the API of OpenAI: chat and text completions with log-probabilities, one request at a time.

`openai_api` reads the requests and writes the answers, without a network; `http_server` listens. Importing this package
imports neither torch nor the libraries of the extra `server`.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.server.call_fields import ApiError
    from decodescope.core.server.http_server import LOCAL_HOST, CallCounts, HttpServer, ServerError, new_key
    from decodescope.core.server.openai_api import (
        CONTEXT_EXCEEDED,
        ApiResponse,
        CompletionCall,
        ServedModel,
        ServedRequest,
    )
    from decodescope.core.server.serve_command import run

__all__ = sorted(_PUBLIC_NAMES)
