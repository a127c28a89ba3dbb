"""An engine in front of another one: what it does not do itself, that one does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.session.engine import Engine
from app.session.layer_jobs import Part
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
    from app.state.layer_queries import LookRequest
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

    def prefix(self, request: PrefixRequest) -> PrefixNews:
        """As the other engine does."""
        return self._engine.prefix(request)

    def reckon(self, request: RunRequest) -> MemoryEstimate | None:
        """As the other engine does."""
        return self._engine.reckon(request)

    def steps_quickly(self, request: StepsRequest) -> bool:
        """As the other engine does."""
        return self._engine.steps_quickly(request)

    def look(self, request: LookRequest) -> Iterator[Part]:
        """As the other engine does."""
        return self._engine.look(request)

    def suppose(self, request: StepReplayRequest) -> WhatIf:
        """As the other engine does."""
        return self._engine.suppose(request)
