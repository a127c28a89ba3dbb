"""Data that an engine sends beyond the request is dropped at a cost that is linear in its size."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from decodescope.core.errors import EngineReplyError
from decodescope.core.remote import client as messages_module
from decodescope.core.remote import engines
from decodescope.core.remote.client import parse_messages
from decodescope.core.remote.remote_model import _served_model
from decodescope.core.remote.remote_run import TokenEventBuilder
from decodescope.core.remote.responses import (
    MAX_ALTERNATIVES,
    ResponseUsage,
    StreamedToken,
    TokenLogprob,
    TokenTable,
    choice_tokens,
    split_text,
)
from decodescope.core.remote.tokenization import _token_after


class FakeModel:
    """The attributes that a TokenEventBuilder uses."""

    kind = engines.registry["other"]

    def __init__(self) -> None:
        self.words = TokenTable()


def streamed_token(count: int, own: int) -> StreamedToken:
    top = tuple(TokenLogprob(f"t{place}", -0.1 * place) for place in range(count))
    return StreamedToken(f"t{own}", None, -0.1 * own, top)


def event_builder(asked: int) -> TokenEventBuilder:
    return TokenEventBuilder(FakeModel(), asked, frozenset(), "sampled")  # type: ignore[arg-type]


@pytest.mark.parametrize(("own", "expected"), [(0, 3), (2, 3), (50, 4)])
def test_alternatives_are_limited_to_the_requested_count(own: int, expected: int) -> None:
    event = event_builder(3).build(streamed_token(100, own), "", 0, 0, 0.0)
    assert len(event.alternatives) == expected
    assert [one.text for one in event.alternatives[:3]] == ["t0", "t1", "t2"]
    assert event.rank == (own + 1 if own < 3 else 0)
    assert event.id in {one.id for one in event.alternatives}


def test_unrequested_alternatives_are_dropped() -> None:
    event = event_builder(0).build(streamed_token(100, 0), "", 0, 0, 0.0)
    assert len(event.alternatives) <= 1


class CountingId(int):
    """An id that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountingId.compared += 1
        return int(self) == other

    def __ne__(self, other: object) -> bool:
        CountingId.compared += 1
        return int(self) != other

    __hash__ = int.__hash__


def test_the_cost_of_alternatives_is_linear() -> None:
    counts = []
    for number in (500, 1000):
        top = tuple(TokenLogprob(f"t{place}", -float(place), CountingId(place)) for place in range(number))
        CountingId.compared = 0
        event_builder(number).build(StreamedToken("x", CountingId(10**6), math.nan, top), "", 0, 0, 0.0)
        counts.append(CountingId.compared)
    assert counts[1] <= 2.5 * counts[0] + 10


@pytest.mark.parametrize("shape", ["chat", "completion"])
def test_alternatives_are_read_up_to_the_maximum(shape: str) -> None:
    if shape == "chat":
        top: Any = [{"token": f"t{n}", "logprob": -1.0} for n in range(5000)]
        choice = {"logprobs": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": top}]}}
    else:
        choice = {"logprobs": {"tokens": ["a"], "top_logprobs": [{f"t{n}": -1.0 for n in range(5000)}]}}
    (token,) = choice_tokens(choice)
    assert len(token.top) == MAX_ALTERNATIVES


class CountingBytes(bytearray):
    """A buffer that counts the bytes that are copied out of it or into another one."""

    copied = 0

    def __add__(self, other: Any) -> CountingBytes:
        CountingBytes.copied += len(self) + len(other)
        return CountingBytes(bytearray(self) + other)

    def __iadd__(self, other: Any) -> CountingBytes:  # type: ignore[override]
        CountingBytes.copied += len(other)
        super().__iadd__(other)
        return self

    def __bytes__(self) -> bytes:
        CountingBytes.copied += len(self)
        return bytes(bytearray(self))


def endless_line(pieces: int) -> Iterator[bytes]:
    yield b"data: "
    for _ in range(pieces):
        yield b"x" * 1000


def test_cost_of_a_long_line_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_module, "bytearray", CountingBytes, raising=False)
    copied = []
    for count in (200, 400):
        CountingBytes.copied = 0
        with pytest.raises(EngineReplyError):
            list(parse_messages(endless_line(count), "here"))
        copied.append(CountingBytes.copied)
    assert copied[0] >= 200_000, "the buffer under test is no longer the one that collects a line"
    assert copied[1] <= 2.2 * copied[0]


def test_endless_line_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_module, "_MAX_LINE_BYTES", 100_000)
    read = 0

    def body() -> Iterator[bytes]:
        nonlocal read
        for piece in endless_line(10**9):
            read += len(piece)
            yield piece

    with pytest.raises(EngineReplyError):
        list(parse_messages(body(), "here"))
    assert read < 110_000


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1000])
def test_messages_are_parsed_independent_of_chunk_boundaries(cut: int) -> None:
    data = b'data: {"a": 1}\n\n: note\ndata: {"b": "\xc3\xa9"}\r\n\ndata: [DONE]\n'
    pieces = [data[start : start + cut] for start in range(0, len(data), cut)]
    assert list(parse_messages(pieces, "here")) == [{"a": 1}, {"b": "é"}]


def test_text_is_split_among_its_tokens() -> None:
    assert split_text("abcde", ["ab", "x", "c", "e"]) == ["ab", "", "c", "de"]
    assert split_text("", ["a"]) == [""]


class CountingText(str):
    """A text that counts the characters that are sliced off it."""

    sliced = 0

    def __getitem__(self, key: Any) -> CountingText:  # type: ignore[override]
        found = CountingText(super().__getitem__(key))
        CountingText.sliced += len(found)
        return found


def test_splitting_a_text_copies_no_text_per_token() -> None:
    CountingText.sliced = 0
    assert split_text(CountingText("ab" * 500), ["ab"] * 500) == ["ab"] * 500
    assert CountingText.sliced <= 1000


def test_end_of_a_prompt_is_found_at_a_token_boundary() -> None:
    texts = ["<s>", "Once", " upon", " a"]
    assert _token_after("Once upon", texts, 1) == 3
    assert _token_after("Once up", texts, 1) is None
    assert _token_after("", texts, 1) == 1
    assert _token_after("Once upon a", texts, 1) == 4
    assert _token_after("Once upon a time", texts, 1) is None


@pytest.mark.parametrize("value", [-5, True, 10**4000, 1e308, "9", None])
def test_invalid_model_metadata_are_ignored(value: object) -> None:
    served = _served_model({"id": "m", "max_model_len": value, "meta": {"n_vocab": value}})
    assert served.context is None
    assert served.vocabulary_size == 0


@pytest.mark.parametrize("number", [-1, 2**31, 10**4000, True, "7", 1.5])
def test_token_ids_beyond_any_vocabulary_are_dropped(number: object) -> None:
    (token,) = choice_tokens({"logprobs": {"tokens": ["a"]}, "token_ids": [number]})
    assert token.id is None or token.id is True


@pytest.mark.slow
def test_metrics_of_very_many_texts_are_dropped() -> None:
    counts = ResponseUsage(engines.usage_readers())
    for number in range(5000):
        counts.update({"index": number, "meta_info": {"completion_tokens": 1}})
    assert counts.written == 1024


def test_json_message_in_one_line_is_parsed() -> None:
    line = json.dumps({"choices": []}).encode()
    assert list(parse_messages([b"data: " + line + b"\n"], "here")) == [{"choices": []}]
