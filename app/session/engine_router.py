"""Engine router: local models in memory, and remote engines by address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from decodescope.app.state.worker_messages import LoadRequest, ModelInfo, RunRequest

if TYPE_CHECKING:
    from decodescope.app.session.engine import Engine
    from decodescope.app.session.queries.base import Query, Report
    from decodescope.core.events import Event


class EngineRouter:
    """Delegates each request to the local or the remote engine; both keep their models."""

    def __init__(self) -> None:
        self._local: Engine | None = None
        self._remote: Engine | None = None

    def load(self, request: LoadRequest) -> ModelInfo:
        """Delegate to the engine of the model."""
        return self._engine_for(request).load(request)

    def prepare(self, request: RunRequest) -> RunRequest:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).prepare(request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Delegate to the engine of the model."""
        return self._engine_for(request.load).stream(request, cancel)

    def answer(self, query: Query, report: Report) -> object:
        """Delegate to the engine of the query's model; to the local one if it needs no model."""
        return self._engine_for(query.load).answer(query, report)

    def _engine_for(self, request: LoadRequest) -> Engine:
        """Return the engine of a model, created on first use."""
        from decodescope.core import remote

        if remote.is_address(request.model):
            if self._remote is None:
                from decodescope.app.session.remote_engine import RemoteEngine

                self._remote = RemoteEngine()
            return self._remote
        if self._local is None:
            from decodescope.app.session.engine import CoreEngine

            self._local = CoreEngine()
        return self._local
