"""From a recorded run to one that the window shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.state import outcomes
from app.state.request_json import from_plain
from app.state.requests import ErrorReport, Outcome, RunRequest
from app.state.run import Run
from core import words
from core.events import Event, RunStarted

if TYPE_CHECKING:
    from core.trace import Trace

WINDOWS = "request"
"""Under this name the window keeps its own request in a recording's header."""


def run_of(trace: Trace) -> Run:
    """The run as it was when it ended, or as far as it came. Raises RequestProblem."""
    run = Run(_request(trace))
    run.apply(trace.events)
    run.outcome = _outcome(run, trace)
    return run


def _request(trace: Trace) -> RunRequest:
    """The window's own request where the window has recorded it, else what the core's says."""
    own = trace.header.extra.get(WINDOWS)
    return from_plain(own) if own is not None else from_plain(_completed(trace.header.request, trace.events))


def _completed(asked: Mapping[str, object], events: list[Event]) -> dict[str, Any]:
    """The core's request with what it left open, as the run found it."""
    plain = {name: value for name, value in asked.items() if value is not None}
    plain["draft_names"] = plain.pop("drafters", [])
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if started is not None:
        plain |= {"strategy": started.strategy, "cache": started.cache, "load": {"model": started.model}}
    return plain


def _outcome(run: Run, trace: Trace) -> Outcome:
    if trace.failure is not None:
        failure = trace.failure
        error = ErrorReport(failure.title, failure.cause, failure.remedy, kind=failure.kind)
        return Outcome("failed", failure.title, error)
    if run.finished is not None:
        return outcomes.completed(run)
    if trace.is_whole:
        return outcomes.stopped(run)
    return Outcome("stopped", f"cut short after {words.count(len(run.tokens), 'token')}")
