"""Reusable part of an edited prompt: never more than is really read from a cache."""

from __future__ import annotations

import pytest

from decodescope import core
from decodescope.app.state.prompt_reuse import common_prefix_length, estimate_reuse
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest
from decodescope.core.events import Prefilled, RunStarted

OLD = "Once upon a time, there was a fox named Mia."


@pytest.fixture(scope="module")
def model() -> core.LoadedModel:
    return core.load("storyteller")


@pytest.fixture(scope="module")
def run(model: core.LoadedModel) -> Run:
    run = Run(RunRequest(OLD))
    run.apply(core.run(model, core.Request(OLD, {"max_new_tokens": 2}, strategy="greedy")).events)
    return run


@pytest.mark.parametrize(
    "text",
    [
        "Once upon a time, there was a bird.",
        "Once upon a time, there was a foxes den",
        "Once upon a time, there was a fox named Mia. She slept.",
        "Once upon a time, there was a fox named Miami",
        "Once upon",
        "Once",
        "Once upon a time, there was a 🐢",
    ],
)
def test_reuse_estimate_does_not_exceed_actual_reuse(model: core.LoadedModel, run: Run, text: str) -> None:
    found, store = estimate_reuse(run, text), core.PrefixStore()
    assert found is not None
    for prompt in (OLD, text):
        request = core.Request(prompt, {"max_new_tokens": 2}, strategy="greedy")
        events = core.run(model, request, prefixes=store).events
    assert isinstance(events[0], RunStarted)
    read = next(event for event in events if isinstance(event, Prefilled))
    shared = core.shared_length([token.id for token in run.prompt], [token.id for token in events[0].prompt])
    assert found.tokens <= shared
    assert shared - found.tokens <= 1
    assert read.reused >= min(found.tokens, read.tokens - 1)
    assert text[: found.characters] == OLD[: found.characters]


def test_reuse_estimate_without_shared_prefix_is_none(run: Run) -> None:
    assert estimate_reuse(None, "x") is None
    assert estimate_reuse(run, OLD) is None
    assert estimate_reuse(run, "The fox") is None
    assert estimate_reuse(Run(RunRequest(OLD)), "Once") is None


def test_common_prefix_length() -> None:
    assert [common_prefix_length(*pair) for pair in (("ab", "ac"), ("ab", "ab"), ("", "x"), ("a", "abc"))] == [
        1,
        2,
        0,
        1,
    ]
