"""Explanations, the registries, streamers, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

import core
from core.events import Alternative, Stage, TokenChosen
from core.explain.tokens import explain, ordinal, percent
from tests.core import tiny


def token(**more: Any) -> TokenChosen:
    fields: dict[str, Any] = {
        "step": 0, "sequence": 0, "id": 4, "piece": " fox", "text": " fox", "raw_probability": 0.25,
        "probability": 0.31, "raw_log_probability": -1.4, "log_probability": -1.2, "rank": 3, "entropy": 2.0,
        "seconds": 0.01, **more,
    }  # fmt: skip
    return TokenChosen(**fields)


def other(text: str, share: float, rank: int, **more: Any) -> Alternative:
    return Alternative(rank, text, share, share, -1.0, -1.0, rank, **more)


FUNNEL = (
    Stage("raw", "raw", 2048, 1, 1),
    Stage("temperature", "T 0.8", 2048, 1, 1),
    Stage("top_p", "top-p 0.92", 14, 0.92, 0.9),
)


def test_sampled() -> None:
    said = explain(token(method="sampled", funnel=FUNNEL), 2048)
    assert said == "Top-p 0.92 kept 14 of 2,048 tokens. “fox” had 31 %, the third most likely, and the dice chose it."


def test_sampled_without_a_doubt() -> None:
    certain = token(method="sampled", probability=0.9999, rank=1)
    assert explain(certain) == "“fox” had nearly all of the probability: the dice could hardly choose another."
    alone = token(method="sampled", probability=1.0, funnel=(*FUNNEL, Stage("top_k", "top-k 1", 1, 0.3, 0.3)))
    assert explain(alone, 2048).endswith("Only “fox” was left, so no dice were needed.")


def test_two_filters_name_both_ends() -> None:
    funnel = (*FUNNEL, Stage("min_p", "min-p 0.1", 5, 0.9, 0.8))
    assert explain(token(method="sampled", funnel=funnel), 2048).startswith(
        "Top-p 0.92 kept 14 of 2,048 tokens, and in the end 5 were left."
    )


def test_greedy() -> None:
    plain = token(rank=1, alternatives=(Alternative(4, " fox", 0.31, 0.31, -1, -1, 1), other(" cat", 0.2, 2)))
    assert explain(plain) == "“fox” had 31 %, the most of all, ahead of “cat” with 20 %."
    assert "nearly certain" in explain(token(raw_probability=0.99, probability=0.99, rank=1))
    banned = token(alternatives=(other(" wolf", 0.0, 1), other(" fox", 0.31, 3)))
    assert "a setting forbids it here" in explain(banned)
    pushed = token(alternatives=(other(" wolf", 0.1, 1), other(" fox", 0.31, 3)))
    assert "a penalty pushed it down" in explain(pushed)


def test_contrastive() -> None:
    candidates = (
        other(" bird", 0.4, 1, degeneration_penalty=0.91, score=-0.3),
        Alternative(4, " fox", 0.31, 0.31, -1, -1, 3, 0.42, -0.1),
    )
    said = explain(token(method="contrastive", alternatives=candidates))
    assert said == (
        "“bird” was likelier (40 %), but resembled the text before it more (0.91 against 0.42), so “fox” with 31 % "
        "had the better balance."
    )


@pytest.mark.parametrize(
    ("number", "word"), [(1, "first"), (10, "tenth"), (11, "11th"), (22, "22nd"), (113, "113th"), (1001, "1,001st")]
)
def test_ordinals(number: int, word: str) -> None:
    assert ordinal(number) == word


@pytest.mark.parametrize(
    ("share", "word"), [(0.9999, "100 %"), (0.312, "31 %"), (0.0949, "9.5 %"), (0.0042, "0.4 %"), (1e-6, "under 0.1 %")]
)
def test_percent(share: float, word: str) -> None:
    assert percent(share) == word


@pytest.mark.parametrize(
    "settings", [{}, {"do_sample": True}, {"penalty_alpha": 0.6, "top_k": 4}, {"dola_layers": "low"}]
)
def test_every_step_can_be_explained(settings: dict[str, Any]) -> None:
    config = GenerationConfig(max_new_tokens=20, **settings)
    for event in core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config)).events:
        if isinstance(event, TokenChosen):
            said = explain(event, tiny.VOCABULARY)
            assert said.endswith(".")
            assert 1 <= said.count(". ") + 1 <= 3


@pytest.mark.parametrize("strategy", list(core.strategies.registry.values()), ids=lambda s: s.name)
def test_strategy_contract(strategy: core.strategies.Strategy) -> None:
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
    from core.parameter import check

    check(parameter, parameter.default)


def test_flags_decide_as_in_transformers() -> None:
    from core.settings import resolve

    model, ids = tiny.shared("llama"), tiny.prompt()
    for settings, name in [
        ({}, "greedy"), ({"do_sample": True}, "sampling"), ({"penalty_alpha": 0.6, "top_k": 4}, "contrastive"),
        ({"penalty_alpha": 0.6}, "contrastive"), ({"penalty_alpha": 0.6, "top_k": 1}, "greedy"),
        ({"penalty_alpha": 0.6, "do_sample": True}, "sampling"), ({"dola_layers": "low"}, "dola"),
    ]:  # fmt: skip
        assert resolve(model, core.Request(ids, GenerationConfig(**settings)))[0].name == name


def test_a_named_strategy_wins_over_flags() -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    greedy = core.run(model, core.Request(ids, GenerationConfig(max_new_tokens=9))).sequences
    config = GenerationConfig(max_new_tokens=9, do_sample=True)
    assert core.run(model, core.Request(ids, config, strategy="greedy")).sequences == greedy
    assert config.do_sample is True, "the caller's configuration was changed"


class Recorder:
    def __init__(self) -> None:
        self.got: list[Any] = []

    def put(self, value: torch.Tensor) -> None:
        self.got.append(value.tolist())

    def end(self) -> None:
        self.got.append("end")


def test_streamer_protocol() -> None:
    model, ids, config = tiny.shared("llama"), tiny.prompt(), GenerationConfig(max_new_tokens=6)
    ours, theirs = Recorder(), Recorder()
    core.run(model, core.Request(ids, config), streamer=ours)
    model.model.generate(torch.tensor([ids]), generation_config=config, streamer=theirs)
    assert ours.got == theirs.got


def test_streamer_is_ended_by_an_error() -> None:
    recorder = Recorder()
    with pytest.raises(core.errors.StrategyError):
        core.run(tiny.shared("llama"), core.Request([5], strategy="nope"), streamer=recorder)
    assert recorder.got == ["end"]


def test_importing_is_cheap() -> None:
    """Names, registries and the catalogue are there before torch is."""
    code = (
        "import sys, core; list(core.strategies.registry), list(core.caches.registry), core.catalog.available();"
        "print([m for m in ('torch', 'transformers', 'numpy', 'PySide6') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_stage_says_what_it_is() -> None:
    settings: dict[str, Any] = {
        "do_sample": True, "temperature": 0.8, "top_k": 20, "typical_p": 0.9, "repetition_penalty": 1.3,
        "no_repeat_ngram_size": 2, "min_new_tokens": 5, "suppress_tokens": [7],
    }  # fmt: skip
    result = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=2, **settings)))
    event = next(event for event in result.events if isinstance(event, TokenChosen))
    assert [(stage.phrase, stage.kind, stage.value) for stage in event.funnel] == [
        ("the model", "model", None),
        ("the repetition penalty of 1.3", "shift", 1.3),
        ("the ban on any 2 tokens coming twice", "ban", 2),
        ("the minimum of 5 new tokens", "ban", 5),
        ("the list of suppressed tokens", "ban", None),
        ("temperature 0.8", "shift", 0.8),
        ("top-k 20", "cut", 20),
        ("typical sampling 0.9", "cut", 0.9),
    ]
