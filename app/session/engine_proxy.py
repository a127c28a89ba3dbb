"""An engine in front of another one: what it does not do itself, that one does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.session.engine import Engine
from app.session.layer_jobs import PartialResult
from app.state.decode_backend import BackendRequest
from app.state.worker_messages import (
    LoadRequest,
    MemoryEstimate,
    ModelInfo,
    PrefixRequest,
    PrefixResult,
    RunRequest,
    StepReplayRequest,
)

if TYPE_CHECKING:
    from app.state.layer_queries import ModelQuery
    from core import WhatIf
    from core.events import Event


class EngineProxy:
    """Does everything as the other engine does."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self, request: LoadRequest) -> ModelInfo:
        """As the other engine does."""
        return self._engine.load(request)

    def prepare(self, request: RunRequest) -> RunRequest:
        """As the other engine does."""
        return self._engine.prepare(request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """As the other engine does."""
        return self._engine.stream(request, cancel)

    def handle_prefix(self, request: PrefixRequest) -> PrefixResult:
        """As the other engine does."""
        return self._engine.handle_prefix(request)

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate | None:
        """As the other engine does."""
        return self._engine.estimate_memory(request)

    def has_native_step(self, request: BackendRequest) -> bool:
        """As the other engine does."""
        return self._engine.has_native_step(request)

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """As the other engine does."""
        return self._engine.inspect_layers(request)

    def replay_step(self, request: StepReplayRequest) -> WhatIf:
        """As the other engine does."""
        return self._engine.replay_step(request)
