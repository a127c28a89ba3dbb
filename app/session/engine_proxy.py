"""Engine proxy: delegates everything it does not override."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from decodescope.app.session.engine import Engine
from decodescope.app.state.recorded_run import WINDOW_REQUEST_KEY
from decodescope.app.state.request_json import request_to_json
from decodescope.app.state.worker_messages import LoadRequest, ModelInfo, RunRequest
from decodescope.core.events import (
    BeamStep,
    CacheMeasured,
    CostCurve,
    DraftRound,
    Event,
    Finished,
    Metrics,
    Prefilled,
    TokenChosen,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from decodescope.app.session.queries.base import Query, Report


class EngineProxy:
    """Delegates all calls to the wrapped engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def load(self, request: LoadRequest) -> ModelInfo:
        """Delegate to the wrapped engine."""
        return self._engine.load(request)

    def prepare(self, request: RunRequest) -> RunRequest:
        """Delegate to the wrapped engine."""
        return self._engine.prepare(request)

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """Delegate to the wrapped engine."""
        return self._engine.stream(request, cancel)

    def answer(self, query: Query, report: Report) -> object:
        """Delegate to the wrapped engine."""
        return self._engine.answer(query, report)


class DeterministicEngine(EngineProxy):
    """Wraps an engine, with drafting independent of the clock and events without times and free memory."""

    def answer(self, query: Query, report: Report) -> object:
        """Return None for a result that varies, such as free memory."""
        return super().answer(query, report) if query.is_reproducible else None

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
        from decodescope import core

        return core.record(path, events, request, extra={WINDOW_REQUEST_KEY: request_to_json(request)})
