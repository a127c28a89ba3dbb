"""Conversion of a recording to a run for the window."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from decodescope import core
from decodescope.app.state import run_status
from decodescope.app.state.request_json import RequestFormatError, request_from_json
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ErrorReport, Outcome, RunRequest, is_token_ids
from decodescope.core import words
from decodescope.core.common.program_name import NAME
from decodescope.core.errors import TraceError
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import Event, RunStarted
    from decodescope.core.trace import Header, Trace

WINDOW_REQUEST_KEY = "request"
"""Key of the window's own request in a recording's header."""
_BYTES_PER_EVENT = 100
"""Smallest size of an event in a file."""


def load_run(trace: Trace) -> Run:
    """Return the recorded run in its final state.

    Raises TraceError for inconsistent events.
    """
    run = Run(recorded_request(trace))
    try:
        _check(trace.events)
        run.apply(trace.events)
    except (ValueError, LookupError, TypeError, OverflowError):
        raise TraceError(tr("This recording is inconsistent."), tr("Record the run again.")) from None
    run.outcome = recorded_outcome(run, trace)
    return run


def _check(events: list[Event]) -> None:
    """Raise ValueError if events contradict each other. Files are checked when they are read, but a trace can be made
    of any events.
    """
    from decodescope.core.trace import EventChecker

    checker = EventChecker()
    checker.allow(len(events) * _BYTES_PER_EVENT)
    for event in events:
        checker.check(event)


def recorded_request(trace: Trace) -> RunRequest:
    """Return the window's own request if it was recorded, otherwise one made from the core's request or from the
    events.
    """
    started = next((event for event in trace.events if isinstance(event, core.events.RunStarted)), None)
    for plain in (trace.header.extra.get(WINDOW_REQUEST_KEY), _fill_in_request(trace.header.request, started)):
        with suppress(RequestFormatError):
            return request_from_json(plain)
    return RunRequest("".join(token.text for token in started.prompt) if started is not None else "")


def _fill_in_request(request: Mapping[str, object], started: RunStarted | None) -> dict[str, Any]:
    """Return the core's request with its open values filled in from the started run."""
    plain = {name: value for name, value in request.items() if value is not None}
    plain["draft_names"] = plain.pop("drafters", [])
    if started is not None:
        plain |= {"strategy": started.strategy, "cache": started.cache, "load": {"model": started.model}}
        if is_token_ids(plain.get("prompt")):
            plain["prompt_text"] = "".join(token.text for token in started.prompt if not token.special)
    return plain


def recorded_outcome(run: Run, trace: Trace) -> Outcome:
    """Return how a recorded run ended: by an error, by itself, or because the recording was cut short."""
    if trace.failure is not None:
        failure = trace.failure
        error = ErrorReport(failure.title, failure.cause, failure.remedy, kind=failure.kind)
        return Outcome("failed", failure.title, error)
    if run.finished is not None:
        return run_status.completed_outcome(run)
    if trace.is_whole:
        return run_status.stopped_outcome(run)
    return Outcome("stopped", tr("cut short after {tokens}").format(tokens=words.count(len(run.tokens), "token")))


_MONTHS = (
    mark("January"), mark("February"), mark("March"), mark("April"), mark("May"), mark("June"), mark("July"),
    mark("August"), mark("September"), mark("October"), mark("November"), mark("December"),
)  # fmt: skip


def describe_origin(trace: Trace) -> str:
    """Return when it was recorded, with which model and version, and what is missing."""
    return " ".join([_recorded_sentence(trace.header), *_missing(trace)])


def _recorded_sentence(header: Header) -> str:
    when = _format_time(header.made)
    model = header.model
    program = f"{NAME.capitalize()} {header.versions[NAME]}" if NAME in header.versions else ""
    if model is None:
        template = tr("Recorded on {when}; nothing is computed now.")
    elif not program:
        template = tr("Recorded with {model} on {when}; nothing is computed now.")
    else:
        template = tr("Recorded with {model} on {when}, by {program}; nothing is computed now.")
    return template.format(when=when, model=model.name if model is not None else "", program=program)


def _missing(trace: Trace) -> list[str]:
    trouble = [trace.trouble.cause, tr("The events before that are shown.")] if trace.trouble is not None else []
    return [*trouble, *trace.notices]


def _format_time(seconds: float) -> str:
    """Format a time as `3 May 2026, 14:02` in the local time zone."""
    try:
        moment = datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, OSError, ValueError):
        return tr("an invalid date")
    return tr("{day} {month} {year}, {time}").format(
        day=moment.day, month=tr(_MONTHS[moment.month - 1]), year=moment.year, time=f"{moment:%H:%M}"
    )
