"""Engines that delegate: the router to the engine of the model, and the base class of wrapped engines."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.state.worker_messages import (
    AdapterInfo,
    AdapterRequest,
    BackendRequest,
    LoadRequest,
    MemoryEstimate,
    ModelExportRequest,
    ModelExportResult,
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
    from core import StepCounterfactual
    from core.events import Event


class DelegatingEngine:
    """Delegates each request to the engine of its model."""

    def _engine_for(self, request: LoadRequest | None) -> Engine:
        """Return the engine of that model; the local one for None."""
        raise NotImplementedError

    def load(self, request: LoadRequest) -> ModelInfo:
        """Delegate to the engine of the model."""
        return self._engine_for(request).load(request)

    def prepare(self, request: RunRequest) -> RunRequest:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).prepare(request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).stream(request, cancel)

    def handle_prefix(self, request: PrefixRequest) -> PrefixResult:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).handle_prefix(request)

    def export_model(self, request: ModelExportRequest) -> ModelExportResult:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).export_model(request)

    def replay_step(self, request: StepReplayRequest) -> StepCounterfactual:
        """Delegate to the engine of the model."""
        return self._engine_for(request.request.load).replay_step(request)

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate | None:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).estimate_memory(request)

    def has_native_step(self, request: BackendRequest) -> bool:
        """Delegate to the local engine."""
        return self._engine_for(None).has_native_step(request)

    def check_adapter(self, request: AdapterRequest) -> AdapterInfo | None:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).check_adapter(request)

    def inspect_layers(self, request: ModelQuery) -> Iterator[PartialResult]:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).inspect_layers(request)


class EngineRouter(DelegatingEngine):
    """Delegates to the local or the remote engine; both keep their models."""

    def __init__(self) -> None:
        self._local: Engine | None = None
        self._remote: Engine | None = None

    def _engine_for(self, request: LoadRequest | None) -> Engine:
        from core import remote

        if request is None or not remote.is_address(request.model):
            if self._local is None:
                from app.session.engine import CoreEngine

                self._local = CoreEngine()
            return self._local
        if self._remote is None:
            from app.session.remote_engine import RemoteEngine

            self._remote = RemoteEngine()
        return self._remote
