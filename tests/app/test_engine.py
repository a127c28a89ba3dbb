"""The engine with the real core: requests, and one loaded model at a time."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.app.session import worker_jobs
from decodescope.app.session.engine import CoreEngine
from decodescope.app.session.mailbox import WorkerJob
from decodescope.app.session.queries.step_replay import StepReplayQuery
from decodescope.app.session.worker import Worker
from decodescope.app.session.worker_jobs import with_phrase_ids
from decodescope.app.state.worker_messages import LoadRequest, RunRequest, make_error_report
from decodescope.core.errors import CacheError, ModelNotFoundError, ParameterError
from decodescope.core.events import Finished, RunStarted
from decodescope.resources.depth import depth_context
from decodescope.resources.language import ENGLISH, set_language

REQUEST = RunRequest("Once upon a time", config={"max_new_tokens": 6}, load=LoadRequest("storyteller"))


@pytest.fixture(scope="module")
def engine() -> Iterator[CoreEngine]:
    engine = CoreEngine()
    engine.load(LoadRequest("storyteller"))
    yield engine
    engine._unload()


def prepared_request(engine: CoreEngine, **config: Any) -> RunRequest:
    """Return the request that the core receives with this config."""
    assert engine._model is not None
    return with_phrase_ids(engine._model, replace(REQUEST, config=config))


def test_load_returns_model_info(engine: CoreEngine) -> None:
    info = engine.load(LoadRequest("storyteller"))
    assert (info.name, info.device, info.dtype, info.has_chat) == ("storyteller", "cpu", "float32", True)
    assert info.parameters > 1_000_000
    assert info.threads == 1
    assert info.context is not None
    assert "dola" not in info.unsupported_strategies


@pytest.mark.parametrize(
    ("card", "driver", "cuda", "note"),
    [
        (False, False, None, "no GPU found"),
        (False, False, "13.0", "no GPU found"),
        (False, True, None, "this installation does not use the GPU"),
        (False, True, "13.0", "GPU found, but its driver does not suit this installation"),
        (True, True, "13.0", "these weights are for the CPU"),
    ],
)
def test_note_on_the_automatic_cpu_names_its_reason(
    monkeypatch: pytest.MonkeyPatch, card: bool, driver: bool, cuda: str | None, note: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(worker_jobs, "_has_nvidia_driver", lambda: driver)
    assert worker_jobs._device_note("auto", "cpu") == note
    assert worker_jobs._device_note("cpu", "cpu") == worker_jobs._device_note("auto", "cuda") == ""


def test_load_after_language_change_translates_model_info(engine: CoreEngine) -> None:
    """The reason why a cache is unsupported is a translated sentence."""
    request = LoadRequest("storyteller")
    english, model = engine.load(request), engine._model
    set_language("zh_CN")
    try:
        chinese = engine.load(request)
        assert engine.load(request) is chinese
    finally:
        set_language(ENGLISH)
    assert chinese.unsupported_caches["encoder_decoder"] == "storyteller 没有编码器，因此没有交叉注意力需要保存。"
    assert engine.load(request) == english
    assert engine._model is model


def test_load_of_same_model_returns_cached_info(engine: CoreEngine) -> None:
    assert engine.load(LoadRequest("storyteller")) is engine.load(LoadRequest("storyteller"))


def test_stream_yields_events_of_core(engine: CoreEngine) -> None:
    events = list(engine.stream(REQUEST, threading.Event()))
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], Finished)
    assert engine._model is not None
    assert events[-1].sequences[0] == tuple(core.run(engine._model, REQUEST).sequences[0])


def test_run_request_matches_core_request(engine: CoreEngine) -> None:
    """In plain values: the same settings as transformers' class write the same tokens."""
    config = GenerationConfig(max_new_tokens=12, do_sample=True, temperature=0.7, top_k=0)
    request = replace(
        REQUEST, strategy="sampling", config={"max_new_tokens": 12, "temperature": 0.7, "top_k": 0}, seed=3
    )
    own = core.Request(request.prompt, config, seed=3)
    assert engine._model is not None
    assert core.run(engine._model, request).sequences == core.run(engine._model, own).sequences
    assert pickle.loads(pickle.dumps(request)) == request


def test_with_strategy_splits_values_into_config_and_options() -> None:
    strategy = core.strategies.registry["assisted"]
    request = REQUEST.with_strategy(strategy, {"max_new_tokens": 5, "schedule": "constant"})
    assert (request.strategy, request.config, request.options) == (
        "assisted",
        {"max_new_tokens": 5},
        {"schedule": "constant"},
    )
    assert request.settings == {"max_new_tokens": 5, "schedule": "constant"}


def test_stream_accepts_chat_turns(engine: CoreEngine) -> None:
    request = replace(REQUEST, prompt=({"role": "user", "content": "Hi"},))
    assert isinstance(list(engine.stream(request, threading.Event()))[-1], Finished)


def test_a_run_loads_its_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window is notified of every requested load, so a run requests its model once."""
    engine, loads = CoreEngine(), []
    load = engine.load
    monkeypatch.setattr(engine, "load", lambda request: loads.append(request) or load(request))
    Worker(engine).run(WorkerJob(1, REQUEST))
    assert loads == [REQUEST.load]
    engine._unload()
    with pytest.raises(CacheError, match="no longer loaded"):
        engine.stream(REQUEST, threading.Event())


def test_bad_words_become_ids_with_and_without_leading_space(engine: CoreEngine) -> None:
    assert engine._model is not None
    encode = engine._model.tokenizer.encode
    ids = prepared_request(engine, bad_words_ids=["fox"]).config["bad_words_ids"]
    assert ids == [encode("fox", add_special_tokens=False), encode(" fox", add_special_tokens=False)]
    assert prepared_request(engine, bad_words_ids=[[5], [6, 7]]).config["bad_words_ids"] == [[5], [6, 7]]
    assert prepared_request(engine, stop_strings=["The end"]).config["stop_strings"] == ["The end"]


def test_what_if_passes_on_unset_settings_and_options(engine: CoreEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine._model is not None
    received: list[Any] = []
    monkeypatch.setattr(core, "replay_step", lambda *arguments, **_: received.append(arguments[4]))
    request = replace(REQUEST, strategy="sampling", config={"min_p": 0.1, "grammar": None, "seed_each": True})
    changes = {"min_p": None, "stages": ["top_k", "top_p"], "suppress_tokens": ["."]}
    StepReplayQuery(request, (5,), 0, 0, changes).run(engine, received.append)
    token = engine._model.tokenizer.encode(".", add_special_tokens=False)
    assert received == [{"min_p": None, "stages": ["top_k", "top_p"], "suppress_tokens": token}]


def test_a_banned_word_is_not_written(engine: CoreEngine) -> None:
    plain = list(engine.stream(REQUEST, threading.Event()))[-1].texts[0]
    word = plain.split()[0].strip(",.")
    banned = replace(REQUEST, config={"max_new_tokens": 6, "bad_words_ids": [word]})
    assert word not in list(engine.stream(banned, threading.Event()))[-1].texts[0].split()


def test_suppress_tokens_with_phrase_is_rejected(engine: CoreEngine) -> None:
    (token,) = prepared_request(engine, suppress_tokens=["."]).config["suppress_tokens"]
    assert token == engine._model.tokenizer.encode(".", add_special_tokens=False)[0]  # type: ignore[union-attr]
    with pytest.raises(ParameterError, match="single tokens"):
        prepared_request(engine, suppress_tokens=["a whole sentence of words"])


def test_load_of_unknown_model_raises_core_error(engine: CoreEngine) -> None:
    with pytest.raises(ModelNotFoundError):
        CoreEngine().load(LoadRequest("no-such-model"))


def test_open_libraries_runs_only_before_torch_import() -> None:
    """Runs in a new interpreter, because this one has imported torch."""
    import subprocess
    import sys

    code = (
        "import sys; from decodescope.app.session.local_models import open_libraries as o; first = o(); import torch;"
        "print(first == (sys.platform == 'linux'), o(), torch.ones(2).sum().item())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.strip() == "True False 2.0"


@pytest.mark.parametrize("depth", ["plain", "usual", "exact"])
def test_code_words_appear_only_in_the_exact_wording(monkeypatch: pytest.MonkeyPatch, depth: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(worker_jobs, "_has_nvidia_driver", lambda: True)
    error = ParameterError("Top-k (top_k) is -1, which is out of range.", "It must be 0 or more.", "top_k")
    with depth_context(depth):
        assert ("torch" in worker_jobs._device_note("auto", "cpu")) == (depth == "exact")
        report = make_error_report(error)
    assert report.cause == ("Top-k (top_k) is -1, which is out of range." if depth == "exact" else
                            "Top-k is -1, which is out of range.")  # fmt: skip
    assert report.parameter == "top_k"
