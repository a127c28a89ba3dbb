"""What no engine should say: told as unreadable, each kind that had ended raw or could have."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

import core
from core.errors import EngineReplyError
from core.remote import faults
from core.remote.exchange import Patience
from core.remote.messages import messages
from core.remote.model import connect
from core.remote.replies import Counts, log_probability, whole_number
from tests import fake_machine

HASTY = Patience(connect=1, first=5, between=5, tries=1, pause=0.01)
DEEP = b'{"choices": ' * 50_000


def of_first(change: Callable[[dict[str, Any]], object]) -> Callable[[Any], object]:
    """Change the first message that has choices."""

    def bend(value: Any) -> object:
        return change(value) if isinstance(value, dict) and "choices" in value else value

    return bend


SCORED: dict[str, Callable[[dict[str, Any]], object]] = {
    "no object": lambda _value: None,
    "a number for a choice": lambda value: value | {"choices": [5]},
    "no choice": lambda value: value | {"choices": []},
    "nested without end": lambda _value: DEEP,
}
WRITTEN: dict[str, Callable[[dict[str, Any]], object]] = {
    "infinite": lambda value: value | {"choices": [value["choices"][0] | {"index": math.inf}]},
    "a word": lambda value: value | {"choices": [value["choices"][0] | {"index": "a"}]},
    "nested without end": lambda _value: DEEP,
}


@pytest.mark.parametrize("how", SCORED)
def test_a_score_that_is_none_is_told(how: str) -> None:
    with fake_machine.running("vllm") as machine:
        model = connect(machine.name(), patience=HASTY)
        machine.bend = of_first(SCORED[how])
        with pytest.raises(EngineReplyError, match="is not what an OpenAI-compatible engine sends"):
            core.score(model, "Once upon a time")


@pytest.mark.parametrize("how", WRITTEN)
def test_a_message_that_is_none_is_told(how: str) -> None:
    with fake_machine.running("vllm") as machine:
        model = connect(machine.name(), patience=HASTY)
        machine.bend = of_first(WRITTEN[how])
        with pytest.raises(EngineReplyError, match="is not what an OpenAI-compatible engine sends"):
            core.run(model, core.Request("Once", {"max_new_tokens": 4}))


@pytest.mark.parametrize("deep", [b'{"a":' * 100_000, b"[" * 500 + b"]" * 500], ids=["cut", "whole"])
def test_nested_without_end(deep: bytes) -> None:
    assert faults.said(deep).startswith(deep[:20].decode())
    with pytest.raises(EngineReplyError):
        list(messages([b"data: " + deep + b"\n\n"], "here"))


def test_counts_and_places() -> None:
    assert [whole_number(value) for value in (None, 0, 7)] == [0, 0, 7]
    for odd in (-1, 1.0, math.inf, True, "3", [], 2**53):
        with pytest.raises(ValueError):  # noqa: PT011 - it holds the value alone
            whole_number(odd)
    counts = Counts()
    counts.hear({"usage": {"prompt_tokens": 10**400}, "timings": {"prompt_ms": 10**400, "draft_n": 4}})
    counts.hear({"timings": {"draft_n_accepted": 10**400}})
    assert (counts.prompt, counts.prompt_seconds, counts.acceptance) == (None, None, None)


def test_log_probabilities() -> None:
    told = [-0.5, 0, 0.25, 10**400, -(10**400), -3.4e38, True, "x", None, math.nan]
    found = [log_probability(value) for value in json.loads(json.dumps(told))]
    assert found[:6] == [-0.5, 0.0, 0.0, 0.0, -math.inf, -math.inf]
    assert all(map(math.isnan, found[6:]))
