"""Engine proxy: delegates everything it does not override."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from app.session.engine import Engine
from app.session.engine_router import DelegatingEngine
from app.state.recorded_run import WINDOW_REQUEST_KEY
from app.state.request_json import request_to_json
from app.state.worker_messages import LoadRequest, MemoryEstimate, RunRequest
from core.errors import DecodescopeError
from core.events import BeamStep, CacheMeasured, CostCurve, DraftRound, Event, Finished, Metrics, Prefilled, TokenChosen

if TYPE_CHECKING:
    from collections.abc import Generator

    from core.events import Event


class EngineProxy(DelegatingEngine):
    """Delegates all calls to the wrapped engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _engine_for(self, _request: LoadRequest | None) -> Engine:
        return self._engine


class DeterministicEngine(EngineProxy):
    """Wraps an engine, with drafting independent of the clock and events without times and free memory."""

    def estimate_memory(self, request: RunRequest) -> MemoryEstimate:
        """Always raise DecodescopeError, as free memory varies."""
        raise DecodescopeError("Free memory is no part of a still picture.")

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Return the events without times; no prefix cache is used."""
        stream = super().stream(replace(request, steady=True, prefix_budget=0), cancel)
        with closing(cast("Generator[Event]", stream)):
            yield from without_times(stream)


def without_times(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events without times; drop those that contain nothing else."""
    for event in events:
        stripped = strip_times(event)
        if stripped is not None:
            yield stripped


def strip_times(event: Event) -> Event | None:
    """Return the event with all times 0 or None; None if it contains nothing else."""
    match event:
        case CostCurve():
            return None
        case Prefilled() | TokenChosen() | BeamStep():
            return replace(event, seconds=0.0)
        case CacheMeasured():
            return replace(event, spare=0)  # depends on whether there is native code
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
    """Engine proxy that records the first run; an unwritable file is that run's error."""

    def __init__(self, engine: Engine, path: Path) -> None:
        super().__init__(engine)
        self._path: Path | None = path

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Return the run's events. Raises TraceError if the file cannot be created."""
        path, self._path = self._path, None
        events = super().stream(request, cancel)
        if path is None:
            return events
        import core

        return core.record(path, events, request, extra={WINDOW_REQUEST_KEY: request_to_json(request)})
