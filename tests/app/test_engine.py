"""The engine over the real core: requests as the core wants them, one model held at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import core
from app.session.engine import CoreEngine, build_request, default_threads
from app.state.requests import LoadRequest, RunRequest
from core.errors import ModelNotFoundError, ParameterError
from core.events import Finished, RunStarted

REQUEST = RunRequest("storyteller", "Once upon a time", params={"max_new_tokens": 6})


@pytest.fixture(scope="module")
def engine() -> Iterator[CoreEngine]:
    engine = CoreEngine()
    engine.load(LoadRequest("storyteller"))
    yield engine
    engine._forget()


def built(engine: CoreEngine, strategy: str, **params: Any) -> core.Request:
    assert engine._model is not None
    return build_request(RunRequest("storyteller", "x", strategy, params), engine._model)


def test_describes_what_it_loaded(engine: CoreEngine) -> None:
    info = engine.load(LoadRequest("storyteller"))
    assert (info.name, info.device, info.dtype, info.has_chat) == ("storyteller", "cpu", "float32", True)
    assert info.parameters > 1_000_000
    assert info.threads == 1
    assert info.context is not None
    assert "dola" not in info.refused_strategies


def test_the_same_model_is_not_loaded_twice(engine: CoreEngine) -> None:
    assert engine.load(LoadRequest("storyteller")) is engine.load(LoadRequest("storyteller"))


def test_streams_what_the_core_streams(engine: CoreEngine) -> None:
    events = list(engine.stream(REQUEST, threading.Event()))
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], Finished)
    assert engine._model is not None
    assert events[-1].sequences[0] == tuple(core.run(engine._model, built_like(REQUEST, engine)).sequences[0])


def built_like(request: RunRequest, engine: CoreEngine) -> core.Request:
    assert engine._model is not None
    return build_request(request, engine._model)


def test_a_request_says_what_was_set_and_no_more(engine: CoreEngine) -> None:
    request = built(engine, "sampling", temperature=0.7, top_k=0, min_p=None)
    assert (request.strategy, request.config.temperature, request.config.top_k) == ("sampling", 0.7, 0)
    assert request.config.do_sample is True
    assert request.config.min_p is None
    assert request.options == {}


def test_chats_arrive_as_turns(engine: CoreEngine) -> None:
    assert engine._model is not None
    turns = ({"role": "user", "content": "Hi"},)
    assert build_request(RunRequest("storyteller", turns), engine._model).prompt == [{"role": "user", "content": "Hi"}]


def test_phrases_become_ids_with_and_without_their_space(engine: CoreEngine) -> None:
    assert engine._model is not None
    encode = engine._model.tokenizer.encode
    ids = built(engine, "greedy", bad_words_ids=["fox"]).config.bad_words_ids
    assert ids == [encode("fox", add_special_tokens=False), encode(" fox", add_special_tokens=False)]
    assert built(engine, "greedy", bad_words_ids=[[5], [6, 7]]).config.bad_words_ids == [[5], [6, 7]]
    assert built(engine, "greedy", stop_strings=["The end"]).config.stop_strings == ["The end"]


def test_a_banned_word_is_not_written(engine: CoreEngine) -> None:
    plain = list(engine.stream(REQUEST, threading.Event()))[-1].texts[0]
    word = plain.split()[0].strip(",.")
    banned = RunRequest("storyteller", "Once upon a time", params={"max_new_tokens": 6, "bad_words_ids": [word]})
    assert word not in list(engine.stream(banned, threading.Event()))[-1].texts[0].split()


def test_single_tokens_are_asked_for_where_phrases_cannot_serve(engine: CoreEngine) -> None:
    (token,) = built(engine, "greedy", suppress_tokens=["."]).config.suppress_tokens
    assert token == engine._model.tokenizer.encode(".", add_special_tokens=False)[0]  # type: ignore[union-attr]
    with pytest.raises(ParameterError, match="single tokens"):
        built(engine, "greedy", suppress_tokens=["a whole sentence of words"])


def test_errors_of_the_core_pass(engine: CoreEngine) -> None:
    with pytest.raises(ModelNotFoundError):
        CoreEngine().load(LoadRequest("no-such-model"))


def test_threads() -> None:
    assert default_threads(5_000_000) == 1
    assert 1 <= default_threads(7_000_000_000) <= 8


def test_libraries_open_before_the_import_and_only_then() -> None:
    """In an interpreter of its own: this one has long imported torch."""
    import subprocess
    import sys

    code = (
        "import sys; from app.session.preload import open_libraries as o; first = o(); import torch;"
        "print(first == (sys.platform == 'linux'), o(), torch.ones(2).sum().item())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.strip() == "True False 2.0"
