"""Every cache back end: the same text as without one, and every byte accounted for."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import CacheError, ParameterError, StrategyError
from decodescope.core.events import CacheMeasured, RunStarted
from tests.core import tiny, zoo
from tests.long import every

NEW = 30
EXACT = tuple(name for name, backend in core.caches.registry.items() if backend.exact)


def request(cache: str, options: dict[str, Any] | None = None, length: int = 12, **settings: Any) -> core.Request:
    """A run of exactly NEW tokens."""
    settings = {"max_new_tokens": NEW, "min_new_tokens": NEW, **settings}
    return core.Request(tiny.prompt(length), GenerationConfig(**settings), cache=cache, cache_options=options or {})


def serving(kind: str, names: tuple[str, ...] = EXACT) -> list[str]:
    """Back ends that serve a tiny model."""
    return [name for name in names if core.caches.registry[name].unsupported_reason(tiny.shared(kind)) is None]


def reachable_storages(thing: Any, seen: set[int], found: dict[int, int]) -> None:
    """Bytes by address of every tensor storage that can be reached from an object: an accounting of another kind."""
    if id(thing) in seen or isinstance(thing, (torch.nn.Module, type, str, int, float, torch.dtype, torch.device)):
        return
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        storage = thing.untyped_storage()
        if storage.nbytes():
            found[storage.data_ptr()] = storage.nbytes()
    elif isinstance(thing, dict):
        for item in thing.values():
            reachable_storages(item, seen, found)
    elif isinstance(thing, (list, tuple)):
        for item in thing:
            reachable_storages(item, seen, found)
    elif hasattr(thing, "__dict__"):
        reachable_storages(vars(thing), seen, found)


def feed(model: core.LoadedModel, cache: Any, ids: list[int]) -> torch.Tensor:
    """Return the last logits after a pass over the ids with `cache`."""
    name = model.cache_name
    with torch.inference_mode():
        return model.model(torch.tensor([ids]), use_cache=True, **{name: cache}).logits[0, -1]


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", tiny.ALL)
@pytest.mark.parametrize("settings", every(3, [{"do_sample": True}, {}, {"penalty_alpha": 0.6, "top_k": 3}]), ids=str)
def test_exact_back_ends_generate_the_same(kind: str, settings: dict[str, Any]) -> None:
    model = tiny.shared(kind)
    if kind == "mamba" and "penalty_alpha" in settings:
        with pytest.raises(StrategyError, match="recurrent state"):
            core.run(model, request("dynamic", **settings))
        return
    written = {name: core.run(model, request(name, **settings)).sequences for name in serving(kind)}
    assert len(written) >= 2
    assert all(sequences == written["dynamic"] for sequences in written.values()), written


@pytest.mark.parametrize("kind", every(3, tiny.ALL))
def test_every_back_end_generates_the_reference_text(kind: str) -> None:
    model = tiny.shared(kind)
    for sequences in (core.run(model, request(name)).sequences for name in serving(kind)):
        assert sequences == tiny.reference(model, tiny.prompt(12), request("dynamic").config)


@pytest.mark.parametrize("kind", tiny.DECODERS)
def test_measuring_finds_every_storage_at_every_length(kind: str) -> None:
    model = tiny.shared(kind)
    for name in serving(kind):
        backend = core.caches.registry[name]
        if name.startswith("offloaded"):
            continue  # storages in files are not in memory
        cache = backend.build(model, 40, {})
        lengths = [5, *range(6, 22)]
        for before, length in zip([0, *lengths], lengths, strict=False):
            feed(model, cache, tiny.prompt(40)[before:length])
            found: dict[int, int] = {}
            reachable_storages(cache, set(), found)
            now = backend.measure(cache)
            assert now.bytes == sum(found.values())
            assert now.bytes == sum(size for *_, size in now.parts) == sum(now.layers)
            assert now.bytes == backend.predict(model, 40 if name == "static" else length, 1, {})
            assert now.tokens == length


@pytest.mark.parametrize("kind", ["t5", "bart"])
@pytest.mark.parametrize("rows", [1, 3])
def test_predicted_size_of_both_halves_equals_measured_size(kind: str, rows: int) -> None:
    model = tiny.shared(kind)
    more = {"do_sample": True, "num_return_sequences": rows} if rows > 1 else {}
    for name in serving(kind):
        backend = core.caches.registry[name]
        events = core.run(model, request(name, **more)).events
        last = [event for event in events if isinstance(event, CacheMeasured)][-1]
        length = NEW + 1 if name in ("static", "offloaded_static") else last.tokens
        assert last.bytes == backend.predict(model, length, rows, {"source_length": 12, "tokens": last.tokens})
        assert {"self", "cross"} <= {part for _, part, _ in last.parts}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_recurrent_state_does_not_grow(dtype: torch.dtype) -> None:
    model = tiny.make("mamba")
    model.model.to(dtype)
    events = core.run(model, request("model_specific")).events
    sizes = {event.bytes for event in events if isinstance(event, CacheMeasured)}
    assert sizes == {core.caches.registry["model_specific"].predict(model, 1, 1, {})}
    assert {part for event in events if isinstance(event, CacheMeasured) for _, part, _ in event.parts} == {"state"}


def test_cache_size_is_predicted_for_mixed_layer_types() -> None:
    """Latent attention, layers of unlike width, states and windows mixed: nothing of it is read out of names."""
    kinds = ("deepseek_v3", "gemma4_text", "qwen3_next", "granitemoehybrid", "jamba", "lfm2", "deepseek_v32")
    for kind in kinds:
        model, backend = zoo.make(kind), core.caches.registry["dynamic"]
        events = core.run(model, request("dynamic")).events
        last = [event for event in events if isinstance(event, CacheMeasured)][-1]
        assert last.bytes == backend.predict(model, last.tokens, 1, {}), kind
        assert core.estimate(model, request("dynamic")).cache == backend.predict(model, 12 + NEW, 1, {})


@pytest.mark.parametrize("kind", ["mistral", "gemma2", "gemma3"])
def test_windows_stop_growing(kind: str) -> None:
    model, sizes = tiny.shared(kind), {}
    for name in ("dynamic", "sliding_window"):
        events = core.run(model, request(name)).events
        sizes[name] = [event for event in events if isinstance(event, CacheMeasured)][-1]
    windowed = [a < b for a, b in zip(sizes["sliding_window"].layers, sizes["dynamic"].layers, strict=True)]
    assert windowed == [True] * 4 if kind == "mistral" else [True, False] * 2
    assert sizes["sliding_window"].tokens == sizes["dynamic"].tokens


@pytest.mark.parametrize("kind", tiny.DECODERS)
@pytest.mark.parametrize("keep", [3, 11, 12])
def test_truncated_cache_continues_like_a_fresh_one(kind: str, keep: int) -> None:
    model, ids = tiny.shared(kind), tiny.prompt(20)
    for name in serving(kind):
        backend = core.caches.registry[name]
        cache = backend.build(model, 40, {})
        if hasattr(cache, "activate_past_recording"):
            cache.activate_past_recording()
        feed(model, cache, ids[:12])
        if name == "static" and kind in ("mistral", "gemma2", "gemma3"):
            with pytest.raises(CacheError, match="window has moved past"):
                backend.truncate(cache, keep)
            continue
        backend.truncate(cache, keep)
        fresh = backend.build(model, 40, {})
        feed(model, fresh, ids[:keep])
        assert backend.measure(cache).tokens == keep
        torch.testing.assert_close(feed(model, cache, ids[15:]), feed(model, fresh, ids[15:]))


def test_truncating_before_a_moved_window_raises_cache_error() -> None:
    model, backend = tiny.shared("mistral"), core.caches.registry["sliding_window"]
    cache = backend.build(model, 40, {})
    feed(model, cache, tiny.prompt(20))
    with pytest.raises(CacheError, match="window has moved past"):
        backend.truncate(cache, 15)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral"])
def test_selecting_tokens_keeps_their_states(kind: str) -> None:
    model, ids = tiny.shared(kind), tiny.prompt(12)
    for name in serving(kind):
        backend = core.caches.registry[name]
        if name in ("sink", "quantized") or (kind == "mistral" and name != "dynamic"):
            continue
        cache = backend.build(model, 40, {})
        feed(model, cache, ids)
        before = [(layer.keys.clone(), layer.values.clone()) for layer in cache.layers]
        stored = [0, 1, 2, 3, 5, 8, 11]
        backend.select(cache, torch.tensor(stored))
        for layer, (keys, values) in zip(cache.layers, before, strict=True):
            assert torch.equal(layer.keys[:, :, : len(stored)], keys[:, :, stored])
            assert torch.equal(layer.values[:, :, : len(stored)], values[:, :, stored])
        assert backend.measure(cache).tokens == len(stored)


@pytest.mark.parametrize("kind", [*tiny.DECODERS, "mamba"])
def test_copies_are_independent(kind: str) -> None:
    model, ids = tiny.shared(kind), tiny.prompt(20)
    for name in serving(kind):
        backend = core.caches.registry[name]
        cache = backend.build(model, 40, {})
        feed(model, cache, ids[:12])
        twin = backend.copy(cache)
        assert backend.measure(twin) == backend.measure(cache)
        expected = feed(model, cache, ids[12:16] if kind != "mamba" else ids[12:13])
        feed(model, cache, ids[:1])
        again = feed(model, twin, ids[12:16] if kind != "mamba" else ids[12:13])
        torch.testing.assert_close(again, expected)


def test_copy_of_an_encoder_decoder_cache_is_independent() -> None:
    model, backend = tiny.shared("t5"), core.caches.registry["dynamic"]
    cache = backend.build(model, 10, {})
    with torch.inference_mode():
        ids = torch.tensor([[3]])
        model.model(input_ids=torch.tensor([tiny.prompt()]), decoder_input_ids=ids, **{model.cache_name: cache})
        twin = backend.copy(cache)
        model.model(encoder_outputs=(torch.zeros(1, 12, 32),), decoder_input_ids=ids, **{model.cache_name: cache})
    assert backend.measure(twin).tokens == 1
    assert backend.measure(cache).tokens == 2
    assert twin.is_updated == dict.fromkeys(range(3), True)


def test_static_cache_has_the_requested_length() -> None:
    model, backend = tiny.shared("llama"), core.caches.registry["static"]
    events = core.run(model, request("static", {"max_cache_len": 200})).events
    sizes = {event.bytes for event in events if isinstance(event, CacheMeasured)}
    assert sizes == {backend.predict(model, 42, 1, {"max_cache_len": 200})}
    assert backend.predict(model, 42, 1, {"compile": True}) == backend.predict(model, 128, 1, {})


def test_compile_without_a_compiler_raises_cache_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(CacheError, match=r"needs a C\+\+ compiler"):
        core.run(tiny.shared("llama"), request("static", {"compile": True}))


@pytest.mark.slow
@pytest.mark.usefixtures("needs_compiler")
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_compiled_steps_write_the_same(kind: str) -> None:
    model = tiny.make(kind)
    compiled = core.run(model, request("static", {"compile": True}))
    assert compiled.sequences == core.run(model, request("dynamic")).sequences
    assert "compiled" in model.strategy_data


def test_windows_are_not_compiled() -> None:
    with pytest.raises(CacheError, match="windowed layers"):
        core.run(tiny.shared("mistral"), request("static", {"compile": True}))


@pytest.mark.parametrize(
    ("cache", "kind", "words"),
    [
        ("nonsense", "gpt2", "There is no cache"),
        ("static", "mamba", "recurrent states"),
        ("sliding_window", "gpt2", "trained without a window"),
        ("model_specific", "llama", "its own cache is the same as “Dynamic”"),
        ("encoder_decoder", "gpt2", "has no encoder"),
    ],
)
def test_unsupported_cache_raises_an_error_with_the_reason(cache: str, kind: str, words: str) -> None:
    with pytest.raises(CacheError, match=words):
        core.run(tiny.shared(kind), request(cache))


@pytest.mark.parametrize("options", [{"compiled": True}, {"compile": "yes"}, {"max_cache_len": -1}])
def test_invalid_cache_options_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(options))):
        core.run(tiny.shared("llama"), request("static", options))


def test_listing_the_back_ends_loads_no_torch() -> None:
    code = "import sys, core.caches; print(*core.caches.registry, 'torch' in sys.modules)"
    reported = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert reported == [*core.caches.registry, "False"]


def test_every_back_end_answers_for_every_model_and_strategy() -> None:
    for kind in tiny.ALL:
        for backend in core.caches.registry.values():
            for strategy in core.strategies.registry.values():
                reason = backend.unsupported_reason(tiny.shared(kind), strategy.needs)
                assert reason is None or (reason.endswith(".") and len(reason) > 20)


def test_the_run_names_its_cache() -> None:
    first = core.run(tiny.shared("mistral"), request("sliding_window")).events[0]
    assert isinstance(first, RunStarted)
    assert first.cache == "sliding_window"
