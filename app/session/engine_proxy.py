"""An engine in front of another one: what it does not do itself, that one does."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from app.session.engine import Engine
from app.session.layer_jobs import PartialResult
from app.state.recorded_run import WINDOW_REQUEST_KEY
from app.state.request_json import request_to_json
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
from core.errors import DecodescopeError
from core.events import BeamStep, CostCurve, DraftRound, Event, Finished, Metrics, Prefilled, TokenChosen

if TYPE_CHECKING:
    from collections.abc import Generator

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


class DeterministicEngine(EngineProxy):
    """Another engine, whose drafts follow no clock and whose events tell no times and no free memory."""

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate:
        """Refuses: what is free changes from one moment to the next. Raises DecodescopeError."""
        raise DecodescopeError("Free memory is no part of a still picture.")

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The run's events without their times; begins from nothing that earlier runs have read."""
        stream = super().stream(replace(request, steady=True, prefix_budget=0), cancel)
        with closing(cast("Generator[Event]", stream)):
            yield from without_times(stream)


def without_times(events: Iterable[Event]) -> Iterator[Event]:
    """The events, each without its times, and without those that tell nothing else."""
    for event in events:
        stripped = strip_times(event)
        if stripped is not None:
            yield stripped


def strip_times(event: Event) -> Event | None:
    """The event with 0 or None for every time in it; None for one that tells nothing else."""
    match event:
        case CostCurve():
            return None
        case Prefilled() | TokenChosen() | BeamStep():
            return replace(event, seconds=0.0)
        case DraftRound():
            return replace(event, draft_seconds=0.0, verify_seconds=0.0, overhead_seconds=0.0)
        case Finished():
            return replace(event, metrics=replace(event.metrics, **_UNMEASURED))
    return event


_UNMEASURED: dict[str, Any] = {
    name: Metrics.__dataclass_fields__[name].default
    for name in (
        "seconds", "time_to_first_token", "prefill_tokens_per_second", "decode_tokens_per_second",
        "draft_seconds", "verify_seconds", "overhead_seconds", "predicted_speedup", "peak_memory_bytes",
    )
}  # fmt: skip


class RecordingEngine(EngineProxy):
    """Another engine, whose first run is recorded; a record that cannot be written is that run's error."""

    def __init__(self, engine: Engine, path: Path) -> None:
        super().__init__(engine)
        self._path: Path | None = path

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The run's events. Raises TraceError where the file cannot be made."""
        path, self._path = self._path, None
        events = super().stream(request, cancel)
        if path is None:
            return events
        import core

        return core.record(path, events, request, extra={WINDOW_REQUEST_KEY: request_to_json(request)})
