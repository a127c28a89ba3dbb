"""Speculation on every cache that can take its last tokens back: the text of the dynamic one, and no drafts left."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.caches.tensors import cache_operations
from decodescope.core.errors import CacheError
from tests.core import tiny
from tests.core.spec_models import config, greedy, similar_model
from tests.long import every

FULL = ("static", "offloaded", "offloaded_static")
CELLS = [
    *((kind, name) for kind in ("llama", "gpt2", "qwen3") for name in FULL),
    *((kind, name) for kind in ("mistral", "gemma2", "gemma3") for name in ("offloaded", "offloaded_static")),
]
WIDE = {"schedule": "constant", "widths": "1 2 3 1"}


def ways(kind: str) -> dict[str, dict[str, Any]]:
    chain = {"schedule": "constant"}
    return {
        "chain": {"strategy": "assisted", "drafters": [similar_model(kind)], "options": chain},
        "tree": {"strategy": "token_tree", "drafters": [similar_model(kind)], "options": WIDE},
        "merged": {
            "strategy": "token_tree",
            "drafters": [similar_model(kind), similar_model(kind, 5, 0.4)],
            "options": WIDE,
        },
        "lookup": {"strategy": "prompt_lookup", "options": chain},
        "early exit": {"strategy": "early_exit", "options": chain},
    }


@pytest.mark.every(3)
@pytest.mark.parametrize(("kind", "cache"), every(3, CELLS))
def test_equals_greedy_decoding_on_every_cache(kind: str, cache: str) -> None:
    model = tiny.shared(kind)
    expected = greedy(model)
    for name, way in ways(kind).items():
        result = core.run(model, core.Request(tiny.prompt(), config(), top_n=0, cache=cache, **way))
        assert result.sequences[0] == expected, name
        assert result.metrics.acceptance_rate is not None, name


@pytest.mark.parametrize("cache", FULL)
def test_a_drafter_equal_to_the_target_is_always_accepted(cache: str) -> None:
    """Fails when rows are kept at the wrong places after a round."""
    model = tiny.shared("llama")
    for way in ("assisted", "token_tree"):
        options = WIDE if way == "token_tree" else {"schedule": "constant"}
        request = core.Request(tiny.prompt(), config(), way, options, cache=cache, drafters=[model])
        assert core.run(model, request).metrics.acceptance_rate == 1.0


@pytest.mark.parametrize("kind", tiny.ENCODER_DECODERS)
@pytest.mark.parametrize("half", every(3, ["offloaded", "dynamic", "static"]))
def test_encoder_decoder_speculation_with_each_half_cache(kind: str, half: str) -> None:
    model = tiny.shared(kind)
    for way in ({"strategy": "assisted", "drafters": [similar_model(kind)]}, {"strategy": "prompt_lookup"}):
        request = core.Request(
            tiny.prompt(), config(), options={"schedule": "constant"}, cache="encoder_decoder",
            cache_options={"self": half}, **way,
        )  # fmt: skip
        assert core.run(model, request).sequences[0] == greedy(model)


def cache_after(name: str, kind: str = "llama", **more: Any) -> tuple[Any, core.Result]:
    """The cache a run leaves in its store, and the run's result."""
    store = core.PrefixStore(1 << 30)
    way = ways(kind)["tree"] | more
    result = core.run(tiny.shared(kind), core.Request(tiny.prompt(), config(), cache=name, **way), prefixes=store)
    model, backend = tiny.shared(kind), core.caches.registry[name]
    ids = [*tiny.prompt(), *result.sequences[0]]
    fresh = lambda: backend.build(model, len(ids) + 128, {})  # noqa: E731
    found = store.find(model, backend, {}, ids, fresh)
    assert found is not None
    return found.cache, result


@pytest.mark.parametrize("name", ["dynamic", *FULL])
def test_cache_contains_only_the_text_after_a_run(name: str) -> None:
    cache, result = cache_after(name)
    ids = torch.tensor([[*tiny.prompt(), *result.sequences[0]]])
    with torch.inference_mode():
        model = tiny.shared("llama")
        expected = getattr(model.model(ids, use_cache=True), model.cache_name)
    length = int(cache.get_seq_length())
    assert length >= len(ids[0]) - 2
    for layer, whole in zip(cache.layers, expected.layers, strict=True):
        assert torch.allclose(layer.keys[:, :, :length], whole.keys[:, :, :length], atol=1e-3)
        assert not getattr(layer, "trimmed", False)
        assert not layer.keys[:, :, length:].any()


def test_plain_and_drafted_runs_share_a_static_cache_prefix() -> None:
    model, store = tiny.shared("llama"), core.PrefixStore(1 << 30)
    expected = greedy(model)
    ways_: list[dict[str, Any]] = [ways("llama")["chain"], {"strategy": "greedy"}, ways("llama")["tree"]]
    for way in ways_:
        request = core.Request(tiny.prompt(), config(), cache="static", **way)
        assert core.run(model, request, prefixes=store).sequences[0] == expected


def test_trees_without_capacity_enlarge_a_static_cache() -> None:
    """The last round has more drafts than the cache was sized for."""
    model = tiny.shared("llama")
    options = {"schedule": "constant", "widths": "6 6 5"}
    request = core.Request(
        tiny.prompt(), config(), "token_tree", options, cache="static", drafters=[similar_model("llama")]
    )
    assert core.run(model, request).sequences[0] == greedy(model)


def test_kept_rows_are_moved_to_the_front() -> None:
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(1, 2, 9, 4, generator=generator)
    model = tiny.shared("llama")
    for name in ("dynamic", *FULL):
        cache = core.caches.registry[name].build(model, 9, {})
        cache_operations.show_text_only(cache, True)
        for layer in range(model.layers):
            cache.update(states, -states, layer)
        cache_operations.keep_rows(cache, 4, (0, 2, 4))
        for layer in cache.layers:
            length = int(layer.get_seq_length())
            assert length == 7
            assert torch.equal(layer.keys[:, :, :7], states[:, :, [0, 1, 2, 3, 4, 6, 8]])
            assert torch.equal(layer.values[:, :, :7], -states[:, :, [0, 1, 2, 3, 4, 6, 8]])
        cache_operations.crop(cache, 3)
        assert {int(layer.get_seq_length()) for layer in cache.layers} == {3}


def test_disk_layers_are_measured_on_disk() -> None:
    model = tiny.shared("llama")
    result = core.run(model, core.Request(tiny.prompt(), config(), cache="offloaded", **ways("llama")["chain"]))
    measured = [event for event in result.events if isinstance(event, core.events.CacheMeasured)][-1]
    assert {place for place, _, _ in measured.parts} == {"disk", "host"}


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("llama", "quantized", {}, "cannot drop its last tokens"),
    ("llama", "sink", {}, "cannot drop its last tokens"),
    ("llama", "static", {"compile": True}, "one token at a time"),
    ("mistral", "static", {}, "windowed layers"),
    ("gemma3", "sliding_window", {}, "windowed layers"),
    ("gemma3", "model_specific", {}, "windowed layers"),
    ("t5", "encoder_decoder", {"self": "quantized"}, "cannot drop its last tokens"),
]


@pytest.mark.parametrize(("kind", "cache", "options", "word"), REFUSED)
def test_caches_without_truncation_are_refused(kind: str, cache: str, options: dict[str, Any], word: str) -> None:
    request = core.Request(tiny.prompt(), config(), "prompt_lookup", cache=cache, cache_options=options)
    with pytest.raises(CacheError, match=word):
        core.run(tiny.shared(kind), request)
