"""The registry of remote engines: one file adds one, with everything that is peculiar to it."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.core.errors import EngineRefusedError, ParameterError
from decodescope.core.remote import engines
from tests import fake_remote_engine
from tests.core.remote_requests import chosen_tokens, make_request, model_of

NEW_ENGINE = '''
"""Toy engine."""

from decodescope.core.remote.engines.base import EngineKind
from decodescope.core.remote.engines.formats import OPENAI_SETTINGS, USAGE


def read_usage(usage, message):
    if "toy" in message:
        usage.passes = message["toy"]["passes"]


ENGINE = EngineKind(
    "toy",
    "Toy engine",
    {**OPENAI_SETTINGS, "top_k": "k_likeliest", "grammar": "grammar"},
    {**USAGE, "is_toy": True},
    no_top_k=-7,
    max_seed=5,
    alternatives=2,
    owned_by="toymaker",
    grammars={"choice": lambda words: {"one_of": list(words)}},
    read_usage=read_usage,
)
'''


def as_toy(message: Any) -> Any:
    """Bend the answers of the fake machine to those of the toy engine."""
    bent = copy.deepcopy(message)
    for card in bent.get("data", ()):
        card["owned_by"] = "ToyMaker"
    if bent.get("usage"):
        bent["toy"] = {"passes": 2}
    return bent


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An engine in a file of its own, which no other file mentions."""
    (tmp_path / "toy.py").write_text(NEW_ENGINE)
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path)])
    monkeypatch.setattr(engines.registry, "_entries", None)
    yield
    sys.modules.pop(f"{engines.__name__}.toy", None)
    vars(engines).pop("toy", None)


def test_registry_finds_every_built_in_engine() -> None:
    names = ["vllm", "sglang", "llama.cpp", "ollama", "lm_studio", "llama-cpp-python", "transformers", "other"]
    assert list(engines.registry) == names
    assert list(core.remote.KINDS) == names


@pytest.mark.usefixtures("toy")
def test_a_new_file_is_an_engine_that_is_recognized_and_used() -> None:
    with fake_remote_engine.running("other", bend=as_toy) as machine:
        model = model_of(machine)
        assert model.kind.name == "toy"
        result = core.run(model, core.Request("Once upon a time", {"max_new_tokens": 5, "do_sample": True}, seed=7))
        assert machine.sent["is_toy"] is True
        assert machine.sent["k_likeliest"] == 50
        assert (machine.sent["seed"], machine.sent["logprobs"]) == (2, 2)
        assert result.texts == [" there was a fox."]
        assert all(len(token.alternatives) >= 2 for token in chosen_tokens(result.events))
        assert result.metrics.target_passes == 2
        assert result.events[0].engine == "Toy engine"


@pytest.mark.usefixtures("toy")
def test_added_engine_defines_its_grammars_and_refusals() -> None:
    with fake_remote_engine.running("other", bend=as_toy) as machine:
        model = model_of(machine)
        core.run(model, make_request(grammar={"choice": ["yes", "no"]}))
        assert machine.sent["one_of"] == ["yes", "no"]
        with pytest.raises(ParameterError, match="Toy engine"):
            core.run(model, make_request(grammar={"regex": "a+"}))
        with pytest.raises(ParameterError, match="Toy engine"):
            core.run(model, make_request(repetition_penalty=1.5))
        assert "min_p" in model.refused_settings()


def test_score_error_lists_the_engines_that_can_score() -> None:
    with fake_remote_engine.running("llama.cpp") as machine, pytest.raises(EngineRefusedError) as caught:
        core.score(model_of(machine), "Once upon a time")
    assert all(kind.title in caught.value.remedy for kind in engines.registry.values() if kind.scores)


@pytest.mark.parametrize("name", ["address", "client", "endpoints", "remote_model", "remote_run", "request_builder"])
def test_engine_names_appear_only_in_their_own_files(name: str) -> None:
    source = (Path(core.remote.__file__).parent / f"{name}.py").read_text(encoding="utf-8").lower()
    engine_names = {"vllm", "sglang", "llama_cpp", "serve ", "ollama"}
    assert not [engine for engine in engine_names if engine in source]
