"""A model larger than its memory limit: the same results, no more memory, and an estimate of its speed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, MixtralConfig, MixtralForCausalLM

from decodescope import core
from decodescope.core.caches.tensors.continuation_probe import draft_cache
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.speculation.tree_passes import TreePasses, verify_cost
from decodescope.core.errors import DecodescopeError, OutOfMemoryError, ParameterError
from decodescope.core.models import layer_offload
from decodescope.core.models.layer_offload import OffloadedLayer

WHOLE = 22_825_728
"""Bytes of storyteller's weights in float32."""
LIMIT = 14_000_000
SHORT = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}


@pytest.fixture(scope="module")
def whole() -> core.LoadedModel:
    return _loaded("storyteller")


@pytest.fixture(scope="module")
def offloaded() -> core.LoadedModel:
    return _loaded("storyteller", memory_limit=LIMIT)


def _loaded(name: str | Path, **how: object) -> core.LoadedModel:
    model = core.load(name, device="cpu", **how)  # type: ignore[arg-type]
    assert isinstance(model, core.LoadedModel)
    return model


def test_offloaded_model_has_the_logits_of_the_whole_model(
    whole: core.LoadedModel, offloaded: core.LoadedModel
) -> None:
    ids = torch.tensor([[5, 80, 300, 7, 41]])
    with torch.inference_mode():
        assert torch.equal(whole.model(ids).logits, offloaded.model(ids).logits)
    request = core.Request("Once upon a time", config=SHORT)
    assert core.run(whole, request).texts == core.run(offloaded, request).texts


@pytest.mark.parametrize("strategy", ["beam_search", "assisted", "early_exit", "contrastive"])
def test_every_strategy_runs_with_disk_offload(
    whole: core.LoadedModel, offloaded: core.LoadedModel, strategy: str
) -> None:
    drafters = (_loaded("storyteller-draft"),) if strategy == "assisted" else ()
    request = core.Request("Once upon a time", config=SHORT, strategy=strategy, drafters=drafters)
    assert core.run(whole, request).texts == core.run(offloaded, request).texts


def test_offloaded_model_stays_within_the_memory_limit(whole: core.LoadedModel, offloaded: core.LoadedModel) -> None:
    offload = offloaded.disk_offload
    assert offload is not None
    held = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in offloaded.model.parameters()}
    assert sum(held.values()) <= LIMIT
    assert offloaded.weight_bytes == offload.kept_bytes <= LIMIT
    assert offload.kept_bytes + sum(layer.buffer_bytes for layer in offload.layers) >= WHOLE == whole.weight_bytes
    one_more = offload.layers[0].buffer_bytes
    assert offload.kept_bytes + one_more > LIMIT, "as many layers as fit are kept"
    assert offloaded.parameters == whole.parameters


def test_sufficient_memory_limit_disables_offload() -> None:
    model = _loaded("storyteller-draft", memory_limit=10**9)
    assert model.disk_offload is None
    assert core.estimate_throughput(model) is None


def test_zero_memory_limit_keeps_no_layer() -> None:
    offload = _loaded("storyteller", memory_limit=0).disk_offload
    assert offload is not None
    assert len(offload.layers) == 12
    assert offload.kept_bytes < WHOLE / 3


@pytest.mark.parametrize("limit", [-5, "1 GB", float("nan"), True, 1.5, [1]])
def test_invalid_memory_limit_is_refused(limit: object) -> None:
    with pytest.raises(ParameterError, match="The memory limit of the weights"):
        _loaded("storyteller", memory_limit=limit)


def test_too_small_limit_error_names_the_required_memory() -> None:
    with pytest.raises(OutOfMemoryError, match="The limit for its weights") as caught:
        _loaded("storyteller", memory_limit=10**6)
    assert caught.value.remedy.startswith("Allow ")


def test_limit_fit_follows_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_offload, "free_memory", lambda: LIMIT * 4 // 3)
    offload = _loaded("storyteller", memory_limit="fit").disk_offload
    assert offload is not None
    assert offload.kept_bytes <= LIMIT < offload.kept_bytes + offload.layers[0].buffer_bytes
    monkeypatch.setattr(layer_offload, "free_memory", lambda: 10**9)
    assert _loaded("storyteller-draft", memory_limit="fit").disk_offload is None


def test_blueprint_estimates_throughput_without_weights() -> None:
    predicted = core.estimate_throughput(core.blueprint("storyteller", device="cpu", memory_limit=LIMIT))
    assert predicted is not None
    assert (predicted.kept_layers, predicted.layers) == (6, 12)
    assert predicted.sentence.startswith("6 of 12 layers stay in memory, the others are read for every token: about ")
    assert predicted.kept_bytes <= LIMIT


def test_only_the_layers_of_a_sample_are_read(offloaded: core.LoadedModel) -> None:
    offload = offloaded.disk_offload
    assert offload is not None
    read: list[str] = []
    fill, offload.read_layer = offload.read_layer, lambda layer: read.append(layer.name)  # type: ignore[method-assign]
    try:
        for only in (offload.layers[:2], ()):
            with offload.read_only_layers(only), torch.inference_mode():
                offloaded.model(torch.ones(1, 1, dtype=torch.long))
    finally:
        offload.read_layer = fill  # type: ignore[method-assign]
    assert read == [layer.name for layer in offload.layers[:2]]


def test_pass_costs_include_one_read_of_each_layer(
    offloaded: core.LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passes of every size read the same bytes: measuring the whole curve reads each layer once."""
    offload = offloaded.disk_offload
    assert offload is not None
    monkeypatch.setattr(offloaded, "strategy_data", {})
    passes = TreePasses(Forward(offloaded, draft_cache(offloaded)))
    with torch.inference_mode():
        passes.read_text(torch.tensor([[1, 2, 3]]))
        read: list[str] = []
        before, fill = offload.read_seconds, offload.read_layer

        def noted(layer: OffloadedLayer) -> None:
            read.append(layer.name)
            fill(layer)

        monkeypatch.setattr(offload, "read_layer", noted)
        cost = verify_cost(passes, 5)
    assert read == [layer.name for layer in offload.layers]
    assert all(seconds > offload.read_seconds - before > 0 for seconds in cost.seconds)
    assert cost.sizes[-1] >= 4


def test_packed_weights_are_refused_with_a_remedy() -> None:
    with pytest.raises(ParameterError, match="with unpacked weights"):
        _loaded("storyteller", memory_limit=LIMIT, weights="int8")


def test_truncated_weight_file_during_a_run_raises_an_error(tmp_path: Path, whole: core.LoadedModel) -> None:
    assert whole.path is not None
    folder = tmp_path / "model"
    shutil.copytree(whole.path, folder)
    model = _loaded(folder, memory_limit=LIMIT)
    file = folder / "model.safetensors"
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size // 2)
    with pytest.raises(DecodescopeError, match=r"model\.safetensors"):
        core.run(model, core.Request("Once", config=SHORT))


def _saved(network: torch.nn.Module, folder: Path) -> Path:
    network.save_pretrained(folder)  # type: ignore[operator]
    return folder


def test_weights_without_name_prefix_in_float16_are_offloaded(tmp_path: Path) -> None:
    """GPT-2's own files name `h.0`, not `transformer.h.0`; weights stored in float16 are computed in float32."""
    torch.manual_seed(0)
    network = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=32, n_head=2, vocab_size=64, n_positions=32)).eval()
    folder = _saved(network, tmp_path)
    file = folder / "model.safetensors"
    stored = {name.removeprefix("transformer."): one.half() for name, one in load_file(file).items()}
    save_file(stored, file, metadata={"format": "pt"})
    whole = _loaded(folder, dtype="float32")
    half = _loaded(folder, dtype="float32", memory_limit=whole.weight_bytes * 2 // 3)
    assert half.disk_offload is not None
    ids = torch.tensor([[1, 2, 3]])
    with torch.inference_mode():
        assert torch.equal(whole.model(ids).logits, half.model(ids).logits)


def test_layers_merged_while_loading_cannot_be_offloaded(tmp_path: Path) -> None:
    """Mixtral's experts are separate tensors in its files and one tensor in its module."""
    config = MixtralConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=2,
        num_local_experts=4, vocab_size=64,
    )  # fmt: skip
    folder = _saved(MixtralForCausalLM(config), tmp_path)
    with pytest.raises(DecodescopeError, match=r"The limit for its weights|cannot be repeated"):
        _loaded(folder, dtype="float32", memory_limit=100_000)
