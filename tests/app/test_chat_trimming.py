"""Trimming of a chat before a run: turns that do not fit are dropped, counted by the tokenizer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from decodescope import core
from decodescope.app.control.chat_fit import ChatFit, ChatFitQuery
from decodescope.app.session.local_models import LocalModels
from decodescope.app.session.worker_jobs import trim_chat
from decodescope.app.state.conversation import DROP, RESTART
from decodescope.app.state.worker_messages import LoadRequest, RunRequest

TURNS = tuple(
    {"role": role, "content": text}
    for text in ("Tell me a story about a fox.", "What happened next?", "Who helped?")
    for role, text in (("user", text), ("assistant", "The fox met a bear who was very friendly."))
)[:-1]


@pytest.fixture(scope="module")
def model() -> core.LoadedModel:
    return core.blueprint("storyteller")  # type: ignore[return-value]


def tokens(model: core.LoadedModel, messages: Any) -> int:
    return len(core.encode(model, messages, unbounded=True))


def kept(model: core.LoadedModel, context: int, new: int = 0, policy: str = DROP, cache: str = "dynamic") -> int:
    """Return how many of the five messages fit a context of `size` tokens."""
    model.__dict__["context"] = context
    request = RunRequest(
        TURNS, config={"max_new_tokens": new}, when_full=policy, cache=cache, load=LoadRequest("storyteller")
    )
    result = trim_chat(model, request)
    assert result.prompt == TURNS[len(TURNS) - len(result.prompt) :]
    return len(result.prompt)


def test_trim_drops_only_turns_that_exceed_context(model: core.LoadedModel) -> None:
    whole, later, last = (tokens(model, TURNS[start:]) for start in (0, 2, 4))
    assert whole > later > last
    model.__dict__["context"] = whole
    request = RunRequest(TURNS, when_full=DROP, load=LoadRequest("storyteller"))
    assert trim_chat(model, request) is request
    assert [kept(model, size) for size in (whole - 1, later, later - 1, last, 1)] == [3, 3, 1, 1, 1]
    assert kept(model, whole - 1, policy=RESTART) == 1


def test_trim_reserves_room_for_answer_but_not_whole_context(model: core.LoadedModel) -> None:
    whole = tokens(model, TURNS)
    assert kept(model, whole + 10, new=10) == 5
    assert kept(model, whole + 10, new=11) == 3
    assert kept(model, 2 * whole, new=10**6) == 5


def test_trim_without_context_limit_or_policy_keeps_all_turns(model: core.LoadedModel) -> None:
    assert kept(model, 10, cache="sink") == 5
    assert kept(model, 10, policy="") == 5
    text = RunRequest("Once upon a time " * 50, when_full=DROP, load=LoadRequest("storyteller"))
    assert trim_chat(model, text) is text


def test_beginning_of_answer_takes_room(model: core.LoadedModel) -> None:
    whole = tokens(model, TURNS)
    model.__dict__["context"] = whole + 2
    request = RunRequest(TURNS, when_full=DROP, load=LoadRequest("storyteller"))
    assert trim_chat(model, replace(request, beginning=(5, 6))).prompt == TURNS
    assert trim_chat(model, replace(request, beginning=(5, 6, 7))).prompt == TURNS[2:]
    assert trim_chat(model, replace(request, beginning=(5, " and the fox went home"))).prompt == TURNS[2:]


class LoadedModels(LocalModels):
    """The models of a worker that has loaded one."""

    def __init__(self, model: core.LoadedModel | None) -> None:
        super().__init__()
        self.model = model

    def find(self, _request: object) -> core.LoadedModel | None:
        return self.model


def fit(model: core.LoadedModel | None, **more: Any) -> ChatFit | None:
    request = RunRequest(TURNS, when_full=DROP, load=LoadRequest("storyteller"), **more)
    return ChatFitQuery(request, load=request.load).run(LoadedModels(model), lambda _part: None)


def test_fit_of_chat_names_tokens_and_dropped_turns(model: core.LoadedModel) -> None:
    whole, later, last = (tokens(model, TURNS[start:]) for start in (0, 2, 4))
    for context, kept_tokens, dropped, is_too_long in (
        (whole + 1, whole, 0, False), (whole - 1, later, 2, False), (later - 1, last, 4, False), (last, last, 4, True),
    ):  # fmt: skip
        model.__dict__["context"] = context
        found = fit(model)
        assert found is not None
        assert (found.tokens, found.kept_tokens, found.dropped) == (whole, kept_tokens, dropped)
        assert found.is_too_long == is_too_long
    assert fit(model, cache="sink") is None
    assert fit(None) is None
