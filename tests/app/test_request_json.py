"""Requests as JSON: a round trip, errors that name the field, and no permissions in files."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decodescope.app.state.request_json import RequestFormatError, request_from_json, request_to_json
from decodescope.app.state.worker_messages import LoadRequest, RunRequest

texts = st.text(max_size=20)
turns = st.fixed_dictionaries({"role": st.sampled_from(("system", "user", "assistant")), "content": texts})
numbers = st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts), lambda inner: st.lists(inner, max_size=3), max_leaves=6
)
named = st.dictionaries(texts, values, max_size=4)
counts = st.integers(0, 2**40)
loads = st.builds(LoadRequest, model=texts, device=texts, dtype=texts, threads=counts)
requests = st.builds(
    RunRequest,
    prompt=st.one_of(texts, st.lists(turns, max_size=3).map(tuple)),
    strategy=texts, config=named, options=named, cache=texts, cache_options=named, top_n=counts,
    seed=st.integers(-(2**63), 2**63 - 1),
    negative_prompt=st.one_of(st.none(), texts, st.lists(counts, min_size=1, max_size=3).map(tuple)),
    memory_fallback=st.booleans(), steady=st.booleans(), load=loads, draft_names=st.lists(texts, max_size=2).map(tuple),
    prefix_budget=counts, when_full=texts, beginning=st.lists(st.one_of(counts, texts), max_size=3).map(tuple),
    parent=texts, shared_tokens=counts, scored=st.booleans(), second=texts,
)  # fmt: skip


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(requests)
def test_request_survives_json_round_trip(request: RunRequest) -> None:
    written = json.dumps(request_to_json(request), allow_nan=False)
    assert request_from_json(json.loads(written)) == request


def test_request_json_contains_every_field() -> None:
    plain, live, permissions = (
        request_to_json(RunRequest("")),
        {"drafters"},
        {"allow_pickle", "allow_remote_code", "allow_plain"},
    )
    in_files = {"shared_tokens": "place"}
    assert set(plain) == {in_files.get(field.name, field.name) for field in fields(RunRequest)} - live
    assert set(plain["load"]) == {field.name for field in fields(LoadRequest)} - permissions


def test_missing_fields_get_defaults_and_unknown_fields_are_dropped() -> None:
    plain = {"prompt": "Hello", "seed": 7, "load": {"model": "tiny", "quantum": True}, "tomorrow": [1]}
    assert request_from_json(plain) == RunRequest("Hello", seed=7, load=LoadRequest("tiny"))


def test_permissions_are_not_stored_in_json() -> None:
    request = RunRequest("Hello", load=LoadRequest("tiny", allow_pickle=True, allow_remote_code=True))
    plain = request_to_json(request)
    assert "allow_pickle" not in json.dumps(plain)
    plain["load"] |= {"allow_pickle": True, "allow_remote_code": True}
    assert request_from_json(plain) == replace(request, load=LoadRequest("tiny"))


@pytest.mark.parametrize(
    ("plain", "field", "words"),
    [
        (7, "", "prompt is missing"),
        ({"seed": 1}, "", "prompt is missing"),
        ({"prompt": 3}, "prompt", "not text, a chat or token ids"),
        ({"prompt": [{"role": "user"}]}, "prompt", "not text, a chat or token ids"),
        ({"prompt": [-1]}, "prompt", "not text, a chat or token ids"),
        ({"prompt": "a", "seed": 1.5}, "seed", "Its seed is not an integer."),
        ({"prompt": "a", "top_n": -1}, "top_n", "Its top n is not a non-negative integer."),
        ({"prompt": "a", "config": [1]}, "config", "is not a mapping of settings"),
        ({"prompt": "a", "steady": "yes"}, "steady", "neither true nor false"),
        ({"prompt": "a", "draft_names": "tiny"}, "draft_names", "is not a list of names"),
        ({"prompt": "a", "load": "tiny"}, "load", "is not a group of values"),
        ({"prompt": "a", "load": {"threads": "two"}}, "threads", "Its model's threads is not a non-negative integer"),
    ],
    ids=str,
)
def test_invalid_request_error_names_field(plain: Any, field: str, words: str) -> None:
    with pytest.raises(RequestFormatError) as caught:
        request_from_json(plain)
    assert (caught.value.field, words in caught.value.cause) == (field, True)
    assert caught.value.remedy
