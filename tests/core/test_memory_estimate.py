"""Memory estimates without loaded weights equal those with them, and their remedies work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.events import CacheMeasured
from decodescope.core.memory import estimate as fit
from tests.core import tiny

NEW = 20


def request(cache: str = "dynamic", drafters: tuple[core.LoadedModel, ...] = (), **settings: Any) -> core.Request:
    config = GenerationConfig(max_new_tokens=NEW, min_new_tokens=NEW, **settings)
    return core.Request(tiny.prompt(), config, cache=cache, drafters=drafters)


def with_free(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(fit, "free_memory", lambda: size)


@pytest.mark.parametrize("name", ["storyteller", "summarizer"])
def test_estimate_of_a_blueprint_equals_that_of_the_model(name: str) -> None:
    plain, whole = core.blueprint(name), core.load(name)
    requested = replace(request(), prompt="Once upon a time")
    first, second = core.estimate(plain, requested), core.estimate(whole, requested)
    assert (first.weights, first.cache, first.tokens) == (second.weights, second.cache, second.tokens)
    assert first.weights == whole.weight_bytes
    assert next(plain.model.parameters()).is_meta
    for backend in core.caches.registry.values():
        assert backend.unsupported_reason(plain) == backend.unsupported_reason(whole)


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}], ids=str)
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_estimated_cache_equals_the_cache_of_the_run(cache: str, settings: dict[str, Any]) -> None:
    model = tiny.shared("llama")
    measured = [e.bytes for e in core.run(model, request(cache, **settings)).events if isinstance(e, CacheMeasured)]
    estimated = core.estimate(model, request(cache, **settings))
    per_token = core.caches.registry["dynamic"].predict(model, 1, estimated.rows, {})
    assert estimated.cache - per_token <= measured[-1] <= estimated.cache
    assert estimated.tokens == 12 + NEW


def test_estimate_includes_weights_and_cache_of_a_draft_model() -> None:
    model, draft = tiny.shared("llama"), tiny.make("llama", seed=1)
    found = core.estimate(model, request(drafters=(draft,)))
    assert found.draft == draft.weight_bytes + core.caches.registry["dynamic"].predict(draft, 12 + NEW, 1, {})
    assert "for the draft" in found.figures


def test_estimate_is_limited_by_the_context() -> None:
    model = tiny.shared("llama")
    config = GenerationConfig(max_new_tokens=10**6)
    assert core.estimate(model, replace(request(), config=config)).tokens == model.context
    assert core.estimate(model, replace(request("sink"), config=config)).tokens == 12 + 10**6


def test_estimate_that_fits_has_no_remedies(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 10**12)
    found = core.estimate(tiny.shared("llama"), request())
    assert (found.ok, found.advice, found.remedies) == (True, "", ())


def test_every_remedy_makes_the_run_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    model, draft = tiny.shared("llama"), tiny.make("llama", seed=1)
    requested = replace(
        request(num_beams=4), config=GenerationConfig(max_new_tokens=80, num_beams=4), prompt=tiny.prompt(4)
    )
    whole = core.estimate(model, requested)
    with_free(monkeypatch, whole.needed)
    found = core.estimate(model, requested)
    assert not found.ok
    words = found.advice
    new = int(words.split("at most ")[1].split()[0])
    assert 0 < new < 80
    config = GenerationConfig(max_new_tokens=new, num_beams=4)
    assert core.estimate(model, replace(requested, config=config)).ok
    assert not core.estimate(model, replace(requested, config=GenerationConfig(max_new_tokens=new + 1, num_beams=4))).ok
    beams = int(words.split("with ")[2].split()[0])
    assert core.estimate(model, replace(requested, config=GenerationConfig(max_new_tokens=80, num_beams=beams))).ok
    assert "“Offloaded”" in words
    assert core.estimate(model, replace(requested, cache="offloaded")).ok
    assert "in float16" in words
    drafted = core.estimate(model, request(drafters=(draft,)))
    with_free(monkeypatch, round(drafted.needed * 0.9))
    assert "without a draft model" in core.estimate(model, request(drafters=(draft,))).advice


def test_remedies_are_combined_if_none_is_sufficient(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.shared("llama")
    requested = replace(request(), config=GenerationConfig(max_new_tokens=90, num_beams=8), prompt=tiny.prompt(20))
    alone = replace(requested, config=GenerationConfig(max_new_tokens=2), prompt=tiny.prompt(20))
    with_free(monkeypatch, round(1.15 * core.estimate(model, alone).needed))
    found = core.estimate(model, requested)
    assert len(found.remedies) == 1
    new = int(found.advice.split("at most ")[1].split()[0])
    assert "and 1 beam" in found.advice
    config = GenerationConfig(max_new_tokens=new)
    assert core.estimate(model, replace(requested, config=config)).ok


def test_too_large_model_suggests_a_smaller_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 1000)
    assert "smaller model" in core.estimate(tiny.shared("llama"), request()).advice


def test_loaded_weights_count_as_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with_free(monkeypatch, 10**6)
    model = tiny.shared("llama")
    assert core.estimate(model, request(), held=model.weight_bytes).free == 10**6 + model.weight_bytes


def test_float16_halves_the_estimated_cache() -> None:
    plain, half = core.blueprint("storyteller"), core.blueprint("storyteller", dtype="float16")
    assert half.dtype == torch.float16
    requested = replace(request(), prompt="Once upon a time")
    assert core.estimate(half, requested).cache * 2 == core.estimate(plain, requested).cache
