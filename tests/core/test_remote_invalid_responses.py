"""Invalid responses of an engine raise EngineReplyError: every kind that raised a raw exception, or could."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from decodescope import core
from decodescope.core.errors import EngineReplyError
from decodescope.core.remote import http_stream
from decodescope.core.remote.client import parse_messages
from decodescope.core.remote.engines import usage_readers
from decodescope.core.remote.http_stream import Timeouts
from decodescope.core.remote.remote_model import RemoteModel, connect
from decodescope.core.remote.responses import ResponseUsage, as_count, parse_log_probability
from tests import fake_remote_engine

HASTY = Timeouts(connect=1, first_byte=5, between_chunks=5, max_attempts=1, pause=0.01)
DEEP = b'{"choices": ' * 50_000


def of_first(change: Callable[[dict[str, Any]], object]) -> Callable[[Any], object]:
    """Change the first message that has choices."""

    def bend(value: Any) -> object:
        return change(value) if isinstance(value, dict) and "choices" in value else value

    return bend


def run_request(model: RemoteModel) -> object:
    return core.run(model, core.Request("Once", {"max_new_tokens": 4}))


def score_request(model: RemoteModel) -> object:
    return core.score(model, "Once upon a time")


def with_place(place: object) -> Callable[[dict[str, Any]], object]:
    return lambda value: value | {"choices": [value["choices"][0] | {"index": place}]}


@pytest.mark.parametrize(
    ("ask", "change"),
    [
        pytest.param(score_request, lambda _value: None, id="no object"),
        pytest.param(score_request, lambda value: value | {"choices": [5]}, id="a number for a choice"),
        pytest.param(score_request, lambda value: value | {"choices": []}, id="no choice"),
        pytest.param(score_request, lambda _value: DEEP, id="a score nested without end"),
        pytest.param(run_request, with_place(math.inf), id="an infinite place"),
        pytest.param(run_request, with_place("a"), id="a word for a place"),
        pytest.param(run_request, lambda _value: DEEP, id="a message nested without end"),
    ],
)
def test_invalid_responses_raise_engine_reply_error(
    ask: Callable[[RemoteModel], object], change: Callable[[dict[str, Any]], object]
) -> None:
    with fake_remote_engine.running("vllm") as machine:
        model = connect(machine.name(), timeouts=HASTY)
        machine.bend = of_first(change)
        with pytest.raises(EngineReplyError, match="is not a valid response of an OpenAI-compatible engine"):
            ask(model)


@pytest.mark.parametrize("deep", [b'{"a":' * 100_000, b"[" * 500 + b"]" * 500], ids=["cut", "whole"])
def test_deeply_nested_response_raises_an_error(deep: bytes) -> None:
    assert http_stream.error_message(deep).startswith(deep[:20].decode())
    with pytest.raises(EngineReplyError):
        list(parse_messages([b"data: " + deep + b"\n\n"], "here"))


def test_counts_are_validated() -> None:
    assert [as_count(value) for value in (None, 0, 7)] == [0, 0, 7]
    for odd in (-1, 1.0, math.inf, True, "3", [], 2**53):
        with pytest.raises(ValueError):  # noqa: PT011 - it holds the value alone
            as_count(odd)
    counts = ResponseUsage(usage_readers())
    counts.update({"usage": {"prompt_tokens": 10**400}, "timings": {"prompt_ms": 10**400, "draft_n": 4}})
    counts.update({"timings": {"draft_n_accepted": 10**400}})
    assert (counts.prompt, counts.prompt_seconds, counts.acceptance_rate) == (None, None, None)


def test_log_probabilities_are_parsed_and_limited() -> None:
    reported = [-0.5, 0, 0.25, 10**400, -(10**400), -3.4e38, True, "x", None, math.nan]
    found = [parse_log_probability(value) for value in json.loads(json.dumps(reported))]
    assert found[:6] == [-0.5, 0.0, 0.0, 0.0, -math.inf, -math.inf]
    assert all(map(math.isnan, found[6:]))
