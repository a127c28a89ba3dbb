"""Cost and savings of caches: compiling, offloading, measuring, prefix reuse, eviction."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.events import CacheMeasured, Prefilled
from tests.benchmarks.timing import speed_ratio


def measure(quick: bool = False) -> dict[str, float]:
    """All ratios of this module; ratios of speed are higher when better."""
    torch.set_num_threads(1)
    story = core.load("storyteller")
    rounds, tokens = (3, 32) if quick else (7, 96)
    figures = {
        "offloaded to disk ÷ dynamic, 1,024 tokens": against_dynamic(
            story, "offloaded", {}, 1024 - tokens, tokens, rounds
        ),
        "static ÷ dynamic, 1,024 tokens": against_dynamic(story, "static", {}, 1024 - tokens, tokens, rounds),
        "quantized, 4 bits ÷ dynamic, 1,024 tokens": against_dynamic(
            story, "quantized", {}, 1024 - tokens, tokens, rounds
        ),
        "prefill with 1,900 of 2,000 tokens kept ÷ without": prefix_ratio(story, rounds),
        "measuring ÷ not measuring": measuring_ratio(story, tokens, rounds),
        "sink: cache after 5,000 tokens ÷ after 300": sink_growth(story, 600 if quick else 5000),
        "int4 bytes ÷ float16, 1,024 tokens": bytes_ratio(story, {"nbits": 4}),
        "int2 bytes ÷ float16, 1,024 tokens": bytes_ratio(story, {"nbits": 2}),
    }
    if any(map(shutil.which, ("c++", "g++", "clang++", "cl"))) and not quick:
        figures["static, compiled ÷ dynamic, 128 tokens"] = against_dynamic(
            story, "static", {"compile": True}, 32, tokens, rounds
        )
        figures["static, compiled ÷ dynamic, 1,024 tokens"] = against_dynamic(
            story, "static", {"compile": True}, 1024 - tokens, tokens, rounds
        )
    return figures


def ids(count: int) -> list[int]:
    """Tokens without meaning; only their number matters here."""
    return torch.randint(5, 2000, (count,), generator=torch.Generator().manual_seed(count)).tolist()


def decode_seconds(model: core.LoadedModel, request: core.Request) -> float:
    """Seconds between the first and the last token."""
    metrics = core.run(model, request).metrics
    assert metrics.decode_tokens_per_second is not None
    return (metrics.new_tokens - 1) / metrics.decode_tokens_per_second


def against_dynamic(
    model: core.LoadedModel, cache: str, options: dict[str, Any], prompt: int, tokens: int, rounds: int
) -> float:
    """Decode speed on a cache ÷ on the dynamic one, prompts apart."""
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens)

    def on(name: str, settings: dict[str, Any]) -> Callable[[], float]:
        request = core.Request(ids(prompt), config, cache=name, cache_options=settings, top_n=0)
        return lambda: decode_seconds(model, request)

    return ratio_of_returned(on(cache, options), on("dynamic", {}), rounds)


def ratio_of_returned(ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> float:
    """Median of theirs ÷ ours, of the seconds the calls return, in turn."""
    ours(), theirs()
    pairs = []
    for index in range(rounds):
        result, other = (ours(), theirs()) if index % 2 else reversed((theirs(), ours()))
        pairs.append(other / result)
    return sorted(pairs)[len(pairs) // 2]


def prefix_ratio(model: core.LoadedModel, rounds: int) -> float:
    """Return the time to read a prompt of 2,000 tokens ÷ the time with its first 1,900 in a cached prefix."""
    config, prompt = GenerationConfig(max_new_tokens=1, min_new_tokens=1), ids(2000)
    store = core.PrefixStore()
    core.run(model, core.Request(prompt[:1900], config), prefixes=store)
    (stored,) = store.prefixes

    def seconds(with_store: bool) -> float:
        store.prefixes = [stored]
        events = core.stream(model, core.Request(prompt, config), prefixes=store if with_store else None)
        event = next(event for event in events if isinstance(event, Prefilled))
        assert event.reused == (1900 if with_store else 0)
        return event.seconds

    return ratio_of_returned(lambda: seconds(True), lambda: seconds(False), rounds)


def measuring_ratio(model: core.LoadedModel, tokens: int, rounds: int) -> float:
    """Speed with the cache measured as always ÷ with measuring switched off."""
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens)
    request = core.Request(ids(64), config, top_n=0)
    backend = core.caches.registry["dynamic"]
    empty = core.caches.Measurement(0, 0)

    def nothing(*_: Any) -> Any:
        return empty

    def silent() -> Any:
        with mock.patch.object(type(backend), "measure", nothing):
            return core.run(model, request)

    return speed_ratio(lambda: core.run(model, request), silent, rounds)


def sink_growth(model: core.LoadedModel, tokens: int) -> float:
    """Bytes of a sink cache of 256 tokens at the end ÷ just after it was full."""
    config = GenerationConfig(max_new_tokens=tokens, min_new_tokens=tokens)
    request = core.Request(ids(20), config, cache="sink", cache_options={"window_length": 256}, top_n=0)
    sizes = {e.step: e.bytes for e in core.stream(model, request) if isinstance(e, CacheMeasured)}
    return sizes[max(sizes)] / sizes[min(step for step in sizes if step >= 288)]


def bytes_ratio(model: core.LoadedModel, options: dict[str, Any]) -> float:
    """Predicted (and, by the tests, real) bytes at 1,024 tokens ÷ those of half-precision keys and values."""
    whole = core.caches.registry["dynamic"].predict(model, 1024, 1, {})
    half = whole * 2 / torch.empty((), dtype=model.dtype).element_size()
    return core.caches.registry["quantized"].predict(model, 1024, 1, options) / half
