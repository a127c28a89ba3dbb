"""The engine that a window has: models in memory, and those that an address stands for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.state.worker_messages import (
    BackendRequest,
    LoadRequest,
    MemoryEstimate,
    ModelInfo,
    PrefixRequest,
    PrefixResult,
    RunRequest,
    StepReplayRequest,
)

if TYPE_CHECKING:
    from app.session.engine import Engine
    from app.session.layer_jobs import PartialResult
    from app.state.layer_queries import ModelQuery
    from core import WhatIf
    from core.events import Event


class EngineRouter:
    """Asks the engine that has the model of a request; the other keeps what it holds."""

    def __init__(self) -> None:
        self._local: Engine | None = None
        self._remote: Engine | None = None

    def load(self, request: LoadRequest) -> ModelInfo:
        """As the engine that has the model does."""
        return self._engine_for(request).load(request)

    def prepare(self, request: RunRequest) -> RunRequest:
        """As the engine that has the model does."""
        return self._engine_for(request.load).prepare(request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """As the engine that has the model does."""
        return self._engine_for(request.load).stream(request, cancel)

    def handle_prefix(self, request: PrefixRequest) -> PrefixResult:
        """As the engine that has the model does."""
        return self._engine_for(request.load).handle_prefix(request)

    def replay_step(self, request: StepReplayRequest) -> WhatIf:
        """As the engine that has the model does."""
        return self._engine_for(request.request.load).replay_step(request)

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate | None:
        """As the engine that has the model does."""
        return self._engine_for(request.load).estimate_memory(request)

    def has_native_step(self, request: BackendRequest) -> bool:
        """As the engine in memory does: no other one tells."""
        return self._local_engine.has_native_step(request)

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """As the engine that has the model does."""
        return self._engine_for(request.load).inspect_layers(request)

    @property
    def _local_engine(self) -> Engine:
        """The one with models in memory; not before a window has something to ask."""
        if self._local is None:
            from app.session.engine import CoreEngine

            self._local = CoreEngine()
        return self._local

    def _engine_for(self, request: LoadRequest) -> Engine:
        from core import remote

        if not remote.is_address(request.model):
            return self._local_engine
        if self._remote is None:
            from app.session.remote_engine import RemoteEngine

            self._remote = RemoteEngine()
        return self._remote
