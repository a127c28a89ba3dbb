"""Offloading to disk: the same text, files that go away, layers that arrive one ahead."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.caches.tensors.disk_cache import DiskFiles, build_disk_cache
from decodescope.core.errors import CacheError
from decodescope.core.events import CacheMeasured
from tests.core import tiny

BACKENDS = ("offloaded", "offloaded_static")


def request(cache: str, folder: Path, new: int = 30, **settings: Any) -> core.Request:
    config = GenerationConfig(max_new_tokens=new, min_new_tokens=new, **settings)
    return core.Request(tiny.prompt(), config, cache=cache, cache_options={"folder": str(folder)})


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("kind", ["gpt2", "gemma3", "bart"])
@pytest.mark.parametrize("rows", [1, 3])
def test_predicted_bytes_equal_measured_bytes(name: str, kind: str, rows: int, tmp_path: Path) -> None:
    model, backend = tiny.shared(kind), core.caches.registry[name]
    more = {"do_sample": True, "num_return_sequences": rows} if rows > 1 else {}
    for event in core.run(model, request(name, tmp_path, **more)).events:
        if isinstance(event, CacheMeasured):
            length = event.tokens if name == "offloaded" else (12 if kind != "bart" else 1) + 30
            options = {"source_length": 12, "tokens": event.tokens}
            assert event.bytes == backend.predict(model, length, rows, options) == sum(p for *_, p in event.parts)
            assert {place for place, *_ in event.parts} == {"disk", "host"}


@pytest.mark.parametrize("name", BACKENDS)
def test_run_leaves_no_files_and_threads(name: str, tmp_path: Path) -> None:
    core.run(tiny.shared("llama"), request(name, tmp_path))
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    for thread in (thread for thread in threading.enumerate() if thread.name.startswith("cache-prefetch")):
        thread.join(30)
        assert not thread.is_alive()


def test_garbage_collected_cache_does_not_wait_for_threads(tmp_path: Path) -> None:
    """The garbage collector may free it in any thread, where waiting for another thread can deadlock."""
    cache = build_disk_cache(tiny.shared("llama"), tmp_path, None)
    pool, brought, waited = cache.layers[0].files.pool, threading.Event(), []
    pool.submit(brought.wait, 30)
    late = threading.Timer(10, lambda: (waited.append(True), brought.set()))
    late.start()
    del cache
    gc.collect()
    late.cancel()
    assert not waited
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(brought.wait)
    brought.set()


@pytest.mark.skipif(os.name != "posix", reason="only there can a file lose its name while it is in use")
def test_running_cache_leaves_no_file_names(tmp_path: Path) -> None:
    events = core.stream(tiny.shared("llama"), request("offloaded", tmp_path))
    for event in events:
        if isinstance(event, CacheMeasured):
            break
    assert list(tmp_path.iterdir()) == []
    events.close()


def test_disk_files_grow_with_the_text() -> None:
    model = tiny.shared("llama")
    cache = core.caches.registry["offloaded"].build(model, 0, {})
    plain = core.caches.registry["dynamic"].build(model, 0, {})
    torch.manual_seed(0)
    with torch.inference_mode():
        for count in (200, 1, 100, 1, 400, 1):
            keys, values = torch.randn(2, 1, 2, count, 8)
            for layer in range(4):
                seen = cache.update(keys, values, layer)
                expected = plain.update(keys, values, layer)
                assert torch.equal(seen[0], expected[0])
                assert torch.equal(seen[1], expected[1])


def test_next_layer_is_prefetched_by_a_background_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    model, main, loads = tiny.shared("llama"), threading.get_ident(), []
    load = DiskFiles._load
    monkeypatch.setattr(DiskFiles, "_load", lambda self: (loads.append(threading.get_ident()), load(self))[1])
    cache = core.caches.registry["offloaded"].build(model, 0, {})
    with torch.inference_mode():
        model.model(torch.tensor([tiny.prompt()]), **{model.cache_name: cache})
        for _ in range(3):
            model.model(torch.tensor([[5]]), **{model.cache_name: cache})
    cache.layers[0].offload()
    assert len(loads) == 4 * 3 + 1
    assert main not in loads


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_offloaded_layer_keeps_other_dtypes(dtype: torch.dtype) -> None:
    layer = core.caches.registry["offloaded"].build(tiny.shared("llama"), 0, {}).layers[0]
    keys = torch.randn(1, 2, 5, 8, dtype=dtype)
    layer.update(keys, keys)
    assert torch.equal(layer.keys, keys)
    assert layer.keys.dtype == dtype


def test_a_full_disk_is_an_error_not_a_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1000})())
    with pytest.raises(CacheError, match="MB are free"):
        core.run(tiny.shared("llama"), request("offloaded", tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_unusable_cache_folder_raises_cache_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="cannot be written to"):
        core.run(tiny.shared("llama"), request("offloaded", tmp_path / "file"))


def test_offload_to_host_without_a_card_is_refused() -> None:
    run = core.Request([5], cache="offloaded", cache_options={"place": "host"})
    with pytest.raises(CacheError, match="no other memory to move to"):
        core.run(tiny.shared("llama"), run)


@pytest.mark.parametrize(
    "halves", [{"self": "offloaded"}, {"cross": "offloaded"}, {"self": "static", "cross": "offloaded"}]
)
@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_encoder_decoder_halves_are_offloaded_separately(halves: dict[str, str], kind: str) -> None:
    config = GenerationConfig(max_new_tokens=20, min_new_tokens=20)
    mixed = core.run(
        tiny.shared(kind), core.Request(tiny.prompt(), config, cache="encoder_decoder", cache_options=halves)
    )
    plain = core.run(tiny.shared(kind), core.Request(tiny.prompt(), config))
    assert mixed.sequences == plain.sequences
    last = [event for event in mixed.events if isinstance(event, CacheMeasured)][-1]
    on_disk = {part for place, part, _ in last.parts if place == "disk"}
    assert on_disk == {half for half, name in halves.items() if name == "offloaded"}
    predicted = core.caches.registry["encoder_decoder"].predict(
        tiny.shared(kind), 21 if "static" in halves.values() else last.tokens, 1, {**halves, "source_length": 12}
    )
    assert last.bytes == predicted


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a card: CUDA")
def test_layers_of_a_card_are_offloaded_to_host_memory() -> None:
    model = tiny.make("llama")
    model.model.to("cuda")
    config = GenerationConfig(max_new_tokens=30, min_new_tokens=30)
    runs = {name: core.run(model, core.Request(tiny.prompt(), config, cache=name)) for name in ("dynamic", *BACKENDS)}
    assert len({tuple(run.sequences[0]) for run in runs.values()}) == 1
    last = [event for event in runs["offloaded"].events if isinstance(event, CacheMeasured)][-1]
    assert "host" in {place for place, *_ in last.parts}
