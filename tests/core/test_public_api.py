"""Registries, flags, streamers, and the import time of the public API."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from tests.core import tiny


@pytest.mark.parametrize("strategy", list(core.strategies.registry.values()), ids=lambda s: s.name)
def test_strategies_fulfil_the_registry_contract(strategy: core.strategies.Strategy) -> None:
    assert strategy.title
    assert strategy.summary.endswith(".")
    names = strategy.parameter_names
    assert len(set(names)) == len(names)
    assert "max_new_tokens" in names
    for parameter in strategy.parameters:
        assert parameter.help.endswith((".", ")."))
        assert parameter.title
        assert parameter.option or hasattr(GenerationConfig(), parameter.name), parameter.name
        if parameter.default is not None:
            core_check(parameter)
    for alias in strategy.aliases:
        assert core.strategies.registry[alias] is strategy


def core_check(parameter: core.strategies.Parameter) -> None:
    from decodescope.core.parameter import check

    check(parameter, parameter.default)


def test_flags_decide_as_in_transformers() -> None:
    from decodescope.core.settings import resolve_settings

    model, ids = tiny.shared("llama"), tiny.prompt()
    for settings, name in [
        ({}, "greedy"), ({"do_sample": True}, "sampling"), ({"penalty_alpha": 0.6, "top_k": 4}, "contrastive"),
        ({"penalty_alpha": 0.6}, "contrastive"), ({"penalty_alpha": 0.6, "top_k": 1}, "greedy"),
        ({"penalty_alpha": 0.6, "do_sample": True}, "sampling"), ({"dola_layers": "low"}, "dola"),
    ]:  # fmt: skip
        assert resolve_settings(model, core.Request(ids, GenerationConfig(**settings)))[0].name == name


def test_a_named_strategy_wins_over_flags() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    greedy = core.run(model, core.Request(ids, GenerationConfig(max_new_tokens=9))).sequences
    config = GenerationConfig(max_new_tokens=9, do_sample=True)
    assert core.run(model, core.Request(ids, config, strategy="greedy")).sequences == greedy
    assert config.do_sample is True, "the caller's configuration was changed"


class StreamerRecorder:
    def __init__(self) -> None:
        self.got: list[Any] = []

    def put(self, value: torch.Tensor) -> None:
        self.got.append(value.tolist())

    def end(self) -> None:
        self.got.append("end")


def test_streamer_receives_the_calls_of_generate() -> None:
    model, ids, config = tiny.shared("llama"), tiny.prompt(), GenerationConfig(max_new_tokens=6)
    ours, reference = StreamerRecorder(), StreamerRecorder()
    core.run(model, core.Request(ids, config), streamer=ours)
    model.model.generate(torch.tensor([ids]), generation_config=config, streamer=reference)
    assert ours.got == reference.got


def test_streamer_is_ended_by_an_error() -> None:
    recorder = StreamerRecorder()
    with pytest.raises(core.errors.StrategyError):
        core.run(tiny.shared("llama"), core.Request([5], strategy="nope"), streamer=recorder)
    assert recorder.got == ["end"]


def test_importing_core_is_fast() -> None:
    """Names, registries and the catalogue are available before torch is imported."""
    code = (
        "import sys; from decodescope import core; "
        "list(core.strategies.registry), list(core.caches.registry), core.catalog.available();"
        "print([m for m in ('torch', 'transformers', 'numpy', 'PySide6') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
