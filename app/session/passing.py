"""An engine in front of another one: what it does not do itself, that one does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.session.engine import Engine
from app.session.looks import Part
from app.state.requests import Fit, LoadRequest, ModelInfo, PrefixNews, PrefixRequest, RunRequest, Supposition
from app.state.steps import StepsRequest

if TYPE_CHECKING:
    from app.state.inside import LookRequest
    from core import WhatIf
    from core.events import Event


class PassingEngine:
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

    def reckon(self, request: RunRequest) -> Fit | None:
        """As the other engine does."""
        return self._engine.reckon(request)

    def steps_quickly(self, request: StepsRequest) -> bool:
        """As the other engine does."""
        return self._engine.steps_quickly(request)

    def look(self, request: LookRequest) -> Iterator[Part]:
        """As the other engine does."""
        return self._engine.look(request)

    def suppose(self, request: Supposition) -> WhatIf:
        """As the other engine does."""
        return self._engine.suppose(request)
