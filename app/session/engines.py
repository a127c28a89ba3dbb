"""The engine that a window has: models in memory, and those that an address stands for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.state.decode_backend import StepsRequest
from app.state.worker_messages import (
    LoadRequest,
    MemoryEstimate,
    ModelInfo,
    PrefixNews,
    PrefixRequest,
    RunRequest,
    StepReplayRequest,
)

if TYPE_CHECKING:
    from app.session.engine import Engine
    from app.session.layer_jobs import Part
    from app.state.layer_queries import LookRequest
    from core import WhatIf
    from core.events import Event


class Engines:
    """Asks the engine that has the model of a request; the other keeps what it holds."""

    def __init__(self) -> None:
        self._in_memory: Engine | None = None
        self._elsewhere: Engine | None = None

    def load(self, request: LoadRequest) -> ModelInfo:
        """As the engine that has the model does."""
        return self._of(request).load(request)

    def prepare(self, request: RunRequest) -> RunRequest:
        """As the engine that has the model does."""
        return self._of(request.load).prepare(request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """As the engine that has the model does."""
        return self._of(request.load).stream(request, cancel)

    def prefix(self, request: PrefixRequest) -> PrefixNews:
        """As the engine that has the model does."""
        return self._of(request.load).prefix(request)

    def suppose(self, request: StepReplayRequest) -> WhatIf:
        """As the engine that has the model does."""
        return self._of(request.request.load).suppose(request)

    def reckon(self, request: RunRequest) -> MemoryEstimate | None:
        """As the engine that has the model does."""
        return self._of(request.load).reckon(request)

    def steps_quickly(self, request: StepsRequest) -> bool:
        """As the engine in memory does: no other one tells."""
        return self._here.steps_quickly(request)

    def look(self, request: LookRequest) -> Iterator[Part]:
        """As the engine that has the model does."""
        return self._of(request.load).look(request)

    @property
    def _here(self) -> Engine:
        """The one with models in memory; not before a window has something to ask."""
        if self._in_memory is None:
            from app.session.engine import CoreEngine

            self._in_memory = CoreEngine()
        return self._in_memory

    def _of(self, request: LoadRequest) -> Engine:
        from core import remote

        if not remote.is_address(request.model):
            return self._here
        if self._elsewhere is None:
            from app.session.remote_engine import RemoteEngine

            self._elsewhere = RemoteEngine()
        return self._elsewhere
