"""Runs that reuse stored prefixes: the same text with fewer tokens to read."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.caches.prefixes.prefix_files import from_legacy, prefix_digest, to_legacy
from decodescope.core.caches.prefixes.prefix_store import shared_length
from decodescope.core.errors import CacheError
from decodescope.core.events import Prefilled
from tests.core import tiny
from tests.long import every

NEW = 12


def run(
    model: core.LoadedModel, ids: list[int], store: core.PrefixStore | None, cache: str = "dynamic", **more: Any
) -> tuple[list[list[int]], int]:
    """New tokens, and how many of the prompt's were reused."""
    options, strategy = more.pop("cache_options", {}), more.pop("strategy", None)
    config = GenerationConfig(max_new_tokens=NEW, min_new_tokens=NEW, **more)
    result = core.run(
        model,
        core.Request(ids, config, strategy=strategy, cache=cache, cache_options=options),
        prefixes=store,
    )
    return result.sequences, next(event.reused for event in result.events if isinstance(event, Prefilled))


def serving(kind: str) -> list[str]:
    return [name for name, backend in core.caches.registry.items() if not backend.unsupported_reason(tiny.shared(kind))]


@pytest.mark.parametrize("kind", every(3, [*tiny.DECODERS, "mamba"]))
def test_chat_reuses_the_prefix_of_its_last_turn(kind: str) -> None:
    model, turn = tiny.shared(kind), tiny.prompt(5, seed=1)
    for name in serving(kind):
        store = core.PrefixStore()
        first, reused = run(model, tiny.prompt(), store, name)
        assert reused == 0
        history = tiny.prompt() + first[0] + turn
        second, reused = run(model, history, store, name)
        assert reused == 12 + NEW - 1, name
        assert second == run(model, history, None, name)[0], name


@pytest.mark.parametrize("kind", every(3, [*tiny.DECODERS, "mamba"]))
def test_a_branch_starts_in_the_middle_wherever_the_cache_can_be_cut(kind: str) -> None:
    model, ids = tiny.shared(kind), tiny.prompt(20)
    branch = ids[:6] + tiny.prompt(6, seed=2)
    for name in serving(kind):
        store = core.PrefixStore()
        run(model, ids, store, name)
        written, reused = run(model, branch, store, name)
        cut = name in ("dynamic", "offloaded", "offloaded_static", "sink", "quantized") or (
            name == "static" and kind not in ("mistral", "gemma2", "gemma3")
        )
        assert reused == (6 if cut and kind != "mamba" else 0), name
        assert written == run(model, branch, None, name)[0], name


def test_the_same_prompt_again_reads_its_last_token_only() -> None:
    model, store = tiny.shared("llama"), core.PrefixStore()
    assert run(model, tiny.prompt(), store)[1] == 0
    assert run(model, tiny.prompt(), store)[1] == 11
    assert len(store.prefixes) == 1


@pytest.mark.parametrize(
    "more",
    [
        {"do_sample": True, "num_return_sequences": 3},
        {"num_beams": 3},
        {"penalty_alpha": 0.6, "top_k": 3},
        {"prompt_lookup_num_tokens": 4},
        {"strategy": "dola"},
    ],
    ids=str,
)
def test_every_strategy_stores_and_reuses_a_prefix(more: dict[str, Any]) -> None:
    model, store = tiny.shared("llama"), core.PrefixStore()
    run(model, tiny.prompt(), store, **more)
    longer = [*tiny.prompt(), 7, 8, 9]
    written, reused = run(model, longer, store, **more)
    assert reused == (0 if "penalty_alpha" in more else 12)  # contrastive search needs the states of the whole prompt
    assert written == run(model, longer, None, **more)[0]
    assert run(model, longer, store)[1] >= 12


def test_reusing_a_prefix_leaves_its_cache_unchanged() -> None:
    model, store = tiny.shared("llama"), core.PrefixStore()
    run(model, tiny.prompt(), store)
    stored = [layer.keys.clone() for layer in store.prefixes[0].cache.layers]
    run(model, [*tiny.prompt(), 7], store)
    assert all(torch.equal(a, b.keys) for a, b in zip(stored, store.prefixes[0].cache.layers, strict=True))


def test_prefixes_are_not_shared_between_models_or_caches() -> None:
    store = core.PrefixStore()
    run(tiny.shared("llama"), tiny.prompt(), store)
    assert run(tiny.make("llama", seed=1), tiny.prompt(), store)[1] == 0
    assert run(tiny.shared("llama"), tiny.prompt(), store, "static")[1] == 0
    options = {"window_length": 30}
    assert run(tiny.shared("llama"), tiny.prompt(), store, "sink")[1] == 0
    assert run(tiny.shared("llama"), tiny.prompt(), store, "sink", cache_options=options)[1] == 0


def test_least_recently_used_prefix_is_evicted_first() -> None:
    model = tiny.shared("llama")
    size = core.caches.registry["dynamic"].predict(model, 12 + NEW - 1, 1, {})
    store = core.PrefixStore(budget=2 * size)
    one, two, three = (tiny.prompt(seed=seed) for seed in (1, 2, 3))
    run(model, one, store)
    run(model, two, store)
    run(model, one, store)  # used again, so `two` is now the oldest
    run(model, three, store)
    assert store.bytes <= store.budget
    assert [run(model, ids, store)[1] > 0 for ids in (one, three)] == [True, True]
    assert run(model, two, core.PrefixStore(budget=0))[1] == 0
    assert all(prefix.ids[:12] != tuple(two) for prefix in store.prefixes)


def test_prefix_beyond_the_budget_is_not_stored() -> None:
    store = core.PrefixStore(budget=100)
    run(tiny.shared("llama"), tiny.prompt(), store)
    assert store.bytes == 0


def test_prefixes_of_an_unloaded_model_are_removed() -> None:
    store = core.PrefixStore()
    run(tiny.make("gpt2"), tiny.prompt(), store)
    gc.collect()
    run(tiny.shared("llama"), tiny.prompt(), store)
    assert len(store.prefixes) == 1


def test_encoder_decoders_read_their_source_each_time() -> None:
    store = core.PrefixStore()
    first = run(tiny.shared("t5"), tiny.prompt(), store)
    assert run(tiny.shared("t5"), tiny.prompt(), store) == first
    assert store.prefixes == []


@pytest.mark.parametrize(("one", "other", "length"), [([], [1], 0), ([1, 2], [1, 2, 3], 2), ([1, 5], [1, 2, 5], 1)])
def test_shared_length(one: list[int], other: list[int], length: int) -> None:
    assert shared_length(one, other) == shared_length(other, one) == length


def test_saved_prefix_can_be_loaded_again(tmp_path: Path) -> None:
    model, store, later = tiny.shared("llama"), core.PrefixStore(), core.PrefixStore()
    run(model, tiny.prompt(), store)
    store.save(tmp_path / "prefix.safetensors", model)
    loaded = later.load(tmp_path / "prefix.safetensors", model)
    assert loaded.ids == store.prefixes[0].ids
    longer = [*loaded.ids, 9, 10]
    assert run(model, longer, later) == (run(model, longer, None)[0], len(loaded.ids))


def test_a_prefix_of_another_model_is_refused(tmp_path: Path) -> None:
    store, path = core.PrefixStore(), tmp_path / "prefix.safetensors"
    run(tiny.shared("llama"), tiny.prompt(), store)
    store.save(path, tiny.shared("llama"))
    with pytest.raises(CacheError, match="cannot use it"):
        core.PrefixStore().load(path, tiny.make("llama", seed=1))
    with pytest.raises(CacheError, match="exceeds the"):
        core.PrefixStore(budget=10).load(path, tiny.shared("llama"))


def test_invalid_prefix_files_raise_cache_error(tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    with pytest.raises(CacheError, match="could not be read"):
        core.PrefixStore().load(path, tiny.shared("llama"))
    save_file({"x": torch.zeros(2)}, path)
    with pytest.raises(CacheError, match="is not a saved prefix"):
        core.PrefixStore().load(path, tiny.shared("llama"))
    with pytest.raises(CacheError, match="no prefix to save"):
        core.PrefixStore().save(path, tiny.shared("llama"))


def test_inconsistent_prefix_file_is_refused(tmp_path: Path) -> None:
    model, store, path = tiny.shared("llama"), core.PrefixStore(), tmp_path / "prefix.safetensors"
    run(model, tiny.prompt(), store)
    store.save(path, model)
    with safe_open(str(path), framework="pt") as file:
        about = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    for changes in ({"ids": "[1, 2]"}, {"ids": "nonsense"}, {"ids": "{}"}, {"ids": "[" * 9999}, {"digest": "0"}):
        save_file(tensors, path, metadata={**about, **changes})
        with pytest.raises(CacheError, match="damaged"):
            core.PrefixStore().load(path, model)
    save_file(tensors, path, metadata={**about, "format": "another"})
    with pytest.raises(CacheError, match="not a saved prefix"):
        core.PrefixStore().load(path, model)
    save_file(tensors, path, metadata=about)
    core.PrefixStore().load(path, model)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CacheError, match="could not be read"):
        core.PrefixStore().load(path, model)


def zero_a_run(tensors: dict[str, torch.Tensor]) -> None:
    tensors["1.keys"][:, :, 2:4] = 0


def swap_keys_and_values(tensors: dict[str, torch.Tensor]) -> None:
    tensors["1.keys"], tensors["1.values"] = tensors["1.values"], tensors["1.keys"]


def swap_layers(tensors: dict[str, torch.Tensor]) -> None:
    tensors["1.keys"], tensors["2.keys"] = tensors["2.keys"], tensors["1.keys"]


def flip_a_bit(tensors: dict[str, torch.Tensor]) -> None:
    tensors["0.values"].view(torch.int32)[0, 0, 1, 1] ^= 1 << 20


def lose_a_layer(tensors: dict[str, torch.Tensor]) -> None:
    del tensors["3.keys"], tensors["3.values"]


def rename(tensors: dict[str, torch.Tensor]) -> None:
    tensors["one.more.²"] = tensors.pop("0.keys")


@pytest.mark.parametrize("damage", [zero_a_run, swap_keys_and_values, swap_layers, flip_a_bit, lose_a_layer, rename])
def test_tensors_that_were_changed_are_refused(damage: Callable[[Any], None], tmp_path: Path) -> None:
    model, store, path = tiny.shared("llama"), core.PrefixStore(), tmp_path / "prefix.safetensors"
    run(model, tiny.prompt(), store)
    store.save(path, model)
    with safe_open(str(path), framework="pt") as file:
        about, tensors = file.metadata(), {name: file.get_tensor(name).clone() for name in file.keys()}
    damage(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata=about)
    with pytest.raises(CacheError, match="damaged"):
        core.PrefixStore().load(path, model)


@pytest.mark.parametrize(
    "reshape",
    [lambda keys: keys[:, :1], lambda keys: keys[..., :2], lambda keys: keys.double(), lambda keys: keys[0],
     lambda keys: keys.repeat(2, 1, 1, 1), lambda keys: keys[:, :, :3]],
)  # fmt: skip
def test_prefix_with_other_shapes_is_refused(reshape: Callable[[torch.Tensor], torch.Tensor], tmp_path: Path) -> None:
    """Also if the hashes were adapted to the changed content."""
    model, store, path = tiny.shared("llama"), core.PrefixStore(), tmp_path / "prefix.safetensors"
    run(model, tiny.prompt(), store)
    store.save(path, model)
    with safe_open(str(path), framework="pt") as file:
        about, tensors = file.metadata(), {name: file.get_tensor(name) for name in sorted(file.keys())}
    tensors = {name: reshape(tensor).contiguous() for name, tensor in tensors.items()}
    save_file(tensors, path, metadata={**about, "digest": prefix_digest(about["ids"], tensors)})
    with pytest.raises(CacheError, match="damaged"):
        core.PrefixStore().load(path, model)


def other_norm(model: core.LoadedModel) -> None:
    model.model.config.rms_norm_eps = 1e-3


def other_rope(model: core.LoadedModel) -> None:
    model.model.config.rope_parameters["rope_theta"] = 77.0


def tuned(model: core.LoadedModel) -> None:
    with torch.no_grad():
        model.model.model.layers[2].mlp.down_proj.weight[-1, -1] += 0.1


def rolled(model: core.LoadedModel) -> None:
    table = model.model.get_input_embeddings().weight
    with torch.no_grad():
        table.copy_(table.roll(1, 0))


@pytest.mark.parametrize("change", [other_norm, other_rope, tuned, rolled])
def test_a_prefix_of_nearly_the_same_model_is_refused(
    change: Callable[[core.LoadedModel], None], tmp_path: Path
) -> None:
    model, store, path = tiny.make("llama"), core.PrefixStore(), tmp_path / "prefix.safetensors"
    run(model, tiny.prompt(), store)
    store.save(path, model)
    assert core.PrefixStore().load(path, tiny.make("llama")).ids
    twin = tiny.make("llama")
    change(twin)
    with pytest.raises(CacheError, match="cannot use it"):
        core.PrefixStore().load(path, twin)
    if change in (tuned, rolled):  # the same model, changed since its fingerprint was taken
        change(model)
        with pytest.raises(CacheError, match="cannot use it"):
            core.PrefixStore().load(path, model)


@pytest.mark.parametrize("name", ["pipe", "folder", "nowhere/x", "a\0b", "x" * 300])
def test_paths_that_are_not_files_raise_cache_error(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    model, store = tiny.shared("llama"), core.PrefixStore()
    run(model, tiny.prompt(), store)
    for act in (store.load, store.save):
        with pytest.raises(CacheError) as caught:
            act(tmp_path / name, model)
        assert caught.value.remedy


def test_longest_prefix_of_a_text_is_found() -> None:
    model, store = tiny.shared("llama"), core.PrefixStore()
    written = run(model, tiny.prompt(), store)[0][0]
    run(model, tiny.prompt(seed=1), store)
    assert store.longest_prefix(model, [*tiny.prompt(), *written]).ids == (*tiny.prompt(), *written[:-1])
    with pytest.raises(CacheError, match="no longer stored"):
        store.longest_prefix(model, tiny.prompt(seed=2))
    with pytest.raises(CacheError, match="reads its source again"):
        store.longest_prefix(tiny.shared("t5"), tiny.prompt())


@pytest.mark.parametrize("name", ["quantized", "sliding_window"])
def test_only_whole_texts_can_be_saved(name: str, tmp_path: Path) -> None:
    model, store = tiny.shared("llama" if name == "quantized" else "mistral"), core.PrefixStore()
    run(model, tiny.prompt(80), store, name)
    with pytest.raises(CacheError, match="keys and values of every token"):
        store.save(tmp_path / "prefix.safetensors", model)


def test_saving_a_recurrent_state_is_refused(tmp_path: Path) -> None:
    store = core.PrefixStore()
    run(tiny.shared("mamba"), tiny.prompt(), store)
    with pytest.raises(CacheError, match="does not store its prompt as keys"):
        store.save(tmp_path / "prefix.safetensors", tiny.shared("mamba"))


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_legacy_tuples_are_converted_both_ways(kind: str) -> None:
    model, backend = tiny.shared(kind), core.caches.registry["dynamic"]
    cache, ids = backend.build(model, 0, {}), torch.tensor([tiny.prompt()])
    more = {"decoder_input_ids": ids} if kind == "t5" else {}
    with torch.inference_mode():
        model.model(ids, **{model.cache_name: cache}, **more)
    old = to_legacy(cache)
    assert {len(layer) for layer in old} == {4 if kind == "t5" else 2}
    again = from_legacy(old)
    assert backend.measure(again).bytes == backend.measure(cache).bytes
    assert all(
        torch.equal(a, b) for one, two in zip(old, to_legacy(again), strict=True) for a, b in zip(one, two, strict=True)
    )


@pytest.mark.parametrize("layers", [[], [(torch.zeros(1),)], [(torch.zeros(1),) * 2, (torch.zeros(1),) * 4]])
def test_invalid_legacy_tuples_are_refused(layers: list[Any]) -> None:
    with pytest.raises(CacheError, match="is not a tuple"):
        from_legacy(layers)
