"""Runs from the events of a file: settings, outcome, and rejection of implausible ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from decodescope.app.state.recorded_run import WINDOW_REQUEST_KEY, load_run
from decodescope.core.errors import TraceError
from decodescope.core.events import (
    BeamCandidate,
    BeamStep,
    DraftNode,
    DraftRound,
    Event,
    PromptToken,
    RunStarted,
    SequenceFinished,
    TokenChosen,
)
from decodescope.core.trace import VERSION, Failure, Header, Trace

STARTED = RunStarted("sampling", "m", "cpu", "float32", "static", 3, (PromptToken(1, "Once"),), ())
TOKEN = TokenChosen(0, 0, 7, " upon", " upon", 0.5, 0.5, -0.7, -0.7, 1, 0.1, 0.0)
NODE = BeamCandidate(2, 1, 5, "a", 0.5, -0.7, -0.7, -0.7, 1, "kept", 0.5, -0.7, 1, 0.1)
DRAFTED = DraftNode(2, 1, 5, "a", 1, 0, 0.5, 0.5, "accepted")


def trace(*events: Event, request: Any = None, extra: Any = None, **more: Any) -> Trace:
    header = Header(VERSION, request or {"prompt": "Once"}, None, {}, 0.0, extra or {})
    return Trace(header, list(events), **more)


def test_core_request_is_completed_from_run_started_event() -> None:
    requested = {"prompt": [1, 2], "strategy": None, "config": {"top_k": 5}, "drafters": ["d"], "cache": "dynamic"}
    request = load_run(trace(STARTED, TOKEN, request=requested)).request
    assert (request.prompt, request.strategy, request.cache, request.model) == ((1, 2), "sampling", "static", "m")
    assert (request.config, request.draft_names) == ({"top_k": 5}, ("d",))


def test_invalid_request_in_trace_still_loads_run() -> None:
    run = load_run(trace(STARTED, TOKEN, request={"prompt": 3.5}, extra={WINDOW_REQUEST_KEY: {"strategy": 7}}))
    assert run.request.prompt == "Once"
    assert run.text == " upon"


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        ({}, "stopped", "stopped after 1 token"),
        ({"trouble": TraceError("cut")}, "stopped", "cut short after 1 token"),
        ({"failure": Failure("NumericError", "Not a number", "It was none.")}, "failed", "Not a number"),
    ],
)
def test_unfinished_run_has_outcome_with_message(more: dict[str, Any], kind: str, message: str) -> None:
    outcome = load_run(trace(STARTED, TOKEN, **more)).outcome
    assert outcome is not None
    assert (outcome.kind, outcome.message) == (kind, message)


@pytest.mark.parametrize(
    "event",
    [
        replace(STARTED, sequences=10**12),
        replace(TOKEN, sequence=-1),
        SequenceFinished(10**12, "eos"),
        BeamStep(0, (replace(NODE, parent=2),), 2, 0.0),
        DraftRound(0, 0, (replace(DRAFTED, parent=3),), (), 1, "a", "none", 0.0, 0.0, 0.0, 1),
    ],
    ids=lambda event: type(event).__name__,
)
def test_implausible_event_is_rejected(event: Event) -> None:
    with pytest.raises(TraceError, match="inconsistent"):
        load_run(trace(STARTED, event))
