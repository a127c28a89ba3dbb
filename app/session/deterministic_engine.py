"""An engine for pictures that can be made again: its runs show nothing that differs from one run to the next."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from app.session.engine_proxy import EngineProxy
from app.state.worker_messages import MemoryEstimate, RunRequest
from core.errors import DecodescopeError
from core.events import BeamStep, CostCurve, DraftRound, Event, Finished, Metrics, Prefilled, TokenChosen

if TYPE_CHECKING:
    from collections.abc import Generator


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
