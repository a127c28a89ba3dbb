"""Adapters: equal to PEFT, exact at strength 0, on every kind of weights; others are refused with a reason."""

from __future__ import annotations

import copy
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import DynamicCache, MambaConfig, MambaForCausalLM, T5Config, T5ForConditionalGeneration

from decodescope import core
from decodescope.core.decoding.forward.fused_decoder import get_fused_decoder
from decodescope.core.decoding.forward.native_step import get_native_step
from decodescope.core.errors import (
    AdapterError,
    CorruptWeightsError,
    DecodescopeError,
    ParameterError,
    PickledWeightsError,
)
from decodescope.core.models.model_saving import save_gguf
from tests.core import gguf_models
from tests.core.adapters import IDS, load_several, logits_of, save_lora

EXACT = {"rtol": 0, "atol": 1e-5}
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {"target_modules": [*ATTENTION, "gate_proj", "up_proj", "down_proj"]}),
    "qwen2": ("qwen2", {"target_modules": "all-linear", "use_rslora": True, "rank_pattern": {"q_proj": 2},
                        "alpha_pattern": {"down_proj": 3}}),
    "gpt2": ("gpt2", {"target_modules": ["c_attn", "c_proj", "c_fc"], "fan_in_fan_out": True}),
    "neox": ("gpt_neox", {"target_modules": ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"]}),
    "gemma": ("gemma", {"target_modules": ["q_proj", "embed_tokens"]}),
    "dora": ("llama", {"target_modules": ["q_proj", "v_proj", "down_proj"], "use_dora": True}),
    "dora-gpt2": ("gpt2", {"target_modules": ["c_attn"], "use_dora": True, "fan_in_fan_out": True}),
    "biases": ("qwen2", {"target_modules": ["q_proj", "v_proj"], "bias": "all"}),
    "own-biases": ("llama", {"target_modules": ["q_proj", "down_proj"], "lora_bias": True}),
    "replaced": ("qwen2", {"target_modules": ["q_proj"], "modules_to_save": ["lm_head", "norm"]}),
    "embedding": ("llama", {"target_modules": ["embed_tokens", "lm_head"]}),
}  # fmt: skip


def make(kind: str) -> core.LoadedModel:
    model = gguf_models.make(kind)
    if kind == "gpt2":
        model.model.config.num_key_value_heads = None  # it has none, and the fused pass reads it
    return model


@pytest.fixture
def llama() -> core.LoadedModel:
    return gguf_models.make("llama")


@pytest.fixture
def lora(llama: core.LoadedModel, tmp_path: Path) -> Path:
    """An adapter of `llama`."""
    save_lora(llama, tmp_path / "lora", **CASES["llama"][1])
    return tmp_path / "lora"


@pytest.mark.parametrize("case", CASES)
def test_adapter_equals_peft_and_at_strength_zero_the_base(case: str, tmp_path: Path) -> None:
    kind, settings = CASES[case]
    model = make(kind)
    before, scored = logits_of(model.model), _scored(model)
    expected = logits_of(save_lora(model, tmp_path / "lora", **settings))
    model.adapters.set([tmp_path / "lora"])
    torch.testing.assert_close(logits_of(model.model), expected, **EXACT)
    assert not torch.allclose(before, expected, atol=1e-2)
    fused = get_fused_decoder(model)
    assert fused is not None
    with torch.inference_mode():
        torch.testing.assert_close(fused(IDS, DynamicCache(), 0), expected, **EXACT)
    model.adapters.set([(tmp_path / "lora", 0.0)])
    assert torch.equal(logits_of(model.model), before)
    assert _scored(model) == scored
    model.adapters.set([tmp_path / "lora"])
    model.adapters.remove(tmp_path / "lora")
    assert torch.equal(logits_of(model.model), before)
    assert not any(module._forward_hooks for module in model.model.modules())


def _scored(model: core.LoadedModel) -> list[float]:
    return [event.raw_log_probability for event in core.score(model, IDS[0].tolist())]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("case", CASES)
def test_native_step_equals_peft(case: str, tmp_path: Path) -> None:
    kind, settings = CASES[case]
    model = make(kind)
    plain, expected = _native_logits(model), logits_of(save_lora(model, tmp_path / "lora", **settings))
    model.adapters.set([tmp_path / "lora"])
    torch.testing.assert_close(_native_logits(model), expected[:, -4:], **EXACT)
    model.adapters.set([(tmp_path / "lora", 0.5)])
    torch.testing.assert_close(_native_logits(model), logits_of(model.model)[:, -4:], **EXACT)
    model.adapters.set([])
    assert torch.equal(_native_logits(model), plain)


@torch.inference_mode()
def _native_logits(model: core.LoadedModel) -> torch.Tensor:
    """Return the logits of the last four tokens by the native step."""
    fused, cache = get_fused_decoder(model), DynamicCache()
    assert fused is not None
    fused(IDS[:, :-4], cache)
    step = get_native_step(model, cache)
    assert step is not None
    assert step.supports(IDS[:, -4:], cache)
    return step(IDS[:, -4:], cache, 0)


@pytest.mark.parametrize("kind", ["t5", "mamba"])
def test_other_kinds_of_models_equal_peft(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    if kind == "t5":
        config = T5Config(
            vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0
        )
        model, targets = core.wrap(T5ForConditionalGeneration(config)), ["q", "v", "wo"]
    else:
        model = core.wrap(MambaForCausalLM(MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2)))
        targets = ["in_proj", "x_proj"]
    before, expected = logits_of(model.model), logits_of(save_lora(model, tmp_path / "lora", target_modules=targets))
    run = core.run(model, core.Request([5, 6, 7], {"max_new_tokens": 4}))
    model.adapters.set([tmp_path / "lora"])
    torch.testing.assert_close(logits_of(model.model), expected, **EXACT)
    assert core.run(model, core.Request([5, 6, 7], {"max_new_tokens": 4}, adapters=())).texts == run.texts
    model.adapters.set([])
    assert torch.equal(logits_of(model.model), before)


def test_several_adapters_add_up(llama: core.LoadedModel, lora: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    save_lora(llama, other, 2, target_modules=["q_proj", "lm_head"], lora_alpha=3)
    choices = [(lora, 0.5), (other, -1.5)]
    expected = logits_of(load_several(llama, choices))
    llama.adapters.set(choices)
    torch.testing.assert_close(logits_of(llama.model), expected, **EXACT)
    assert [one.name for one in llama.adapters.active] == ["lora", "other"]


@pytest.mark.parametrize(
    ("case", "layer"), [("dora", "model.layers.0.mlp.down_proj"), ("own-biases", "model.layers.0.self_attn.q_proj"),
                        ("replaced", "lm_head"), ("embedding", "lm_head")],
)  # fmt: skip
def test_the_strength_multiplies_every_kind_of_change(case: str, layer: str, tmp_path: Path) -> None:
    kind, settings = CASES[case]
    model = make(kind)
    save_lora(model, tmp_path / "lora", **settings)
    module = model.model.get_submodule(layer)
    vectors = torch.randn(3, int(module.in_features), generator=torch.Generator().manual_seed(0))  # type: ignore[arg-type]

    def output(strength: float) -> torch.Tensor:
        model.adapters.set([(tmp_path / "lora", strength)])
        with torch.no_grad():
            return torch.as_tensor(module(vectors))

    before, change = output(0), output(1) - output(0)
    assert not torch.allclose(change, torch.zeros_like(change), atol=1e-2)
    for strength in (0.25, -1.5):
        torch.testing.assert_close(output(strength), before + strength * change, rtol=0, atol=1e-4)


@pytest.mark.parametrize("weights", ["int8", "int4", "bfloat16", "Q8_0", "F16"])
def test_adapter_on_packed_weights_equals_peft(weights: str, tmp_path: Path) -> None:
    """The same change is added to the product of packed weights; PEFT adds it to the unpacked weights."""
    model = gguf_models.make("llama")
    if weights in ("Q8_0", "F16"):
        packed = core.load(save_gguf(model, tmp_path / "base.gguf", weights))
    else:
        model.model.save_pretrained(tmp_path / "base")
        packed = core.load(tmp_path / "base", weights=weights)
    assert isinstance(packed, core.LoadedModel)
    before = logits_of(packed.model)
    unpacked = gguf_models.make("llama")
    with torch.no_grad():
        for name, parameter in unpacked.model.named_parameters():
            owner = packed.model.get_submodule(name.rpartition(".")[0])
            parameter.copy_(owner.floats() if hasattr(owner, "floats") else owner.weight)
    change = logits_of(save_lora(unpacked, tmp_path / "lora", **CASES["llama"][1])) - logits_of(unpacked.model)
    packed.adapters.set([tmp_path / "lora"])
    difference = (logits_of(packed.model) - before - change).norm() / change.norm()
    assert float(difference) < (0.05 if weights in ("bfloat16", "int4", "Q8_0") else 0.01)
    packed.adapters.set([])
    assert torch.equal(logits_of(packed.model), before)


def test_adapter_replaces_modules_of_packed_weights(tmp_path: Path) -> None:
    model = gguf_models.make("qwen2")
    model.model.save_pretrained(tmp_path / "base")
    settings = {"target_modules": ["q_proj"], "modules_to_save": ["lm_head", "embed_tokens"]}
    expected = logits_of(save_lora(model, tmp_path / "lora", **settings))
    packed = core.load(tmp_path / "base", weights="int8", adapters=[tmp_path / "lora"])
    assert isinstance(packed, core.LoadedModel)
    assert float((logits_of(packed.model) - expected).norm() / expected.norm()) < 0.03
    packed.adapters.set([])
    plain = core.load(tmp_path / "base", weights="int8")
    assert isinstance(plain, core.LoadedModel)
    assert torch.equal(logits_of(packed.model), logits_of(plain.model))


STRATEGIES = ("greedy", "sampling", "beam_search", "contrastive", "prompt_lookup", "early_exit")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_writes_with_the_adapter(strategy: str, llama: core.LoadedModel, lora: Path) -> None:
    """A request's adapter is used for that run only, and gives what the model with the adapter writes."""
    request = core.Request([5, 6, 7, 5, 6], {"max_new_tokens": 8}, strategy=strategy)
    plain = core.run(llama, request).sequences
    once = core.run(llama, core.Request([5, 6, 7, 5, 6], {"max_new_tokens": 8}, strategy, adapters=[lora])).sequences
    assert core.run(llama, request).sequences == plain
    llama.adapters.set([lora])
    assert core.run(llama, request).sequences == once
    assert once != plain


@pytest.mark.parametrize("cache", ["dynamic", "static", "sink", "quantized", "offloaded", "offloaded_static"])
def test_every_cache_generates_the_same_with_the_adapter(cache: str, llama: core.LoadedModel, lora: Path) -> None:
    expected = core.run(llama, core.Request([5, 6, 7], {"max_new_tokens": 8}, adapters=[lora])).sequences
    request = core.Request([5, 6, 7], {"max_new_tokens": 8}, cache=cache, adapters=[lora])
    assert core.run(llama, request).sequences == expected


def test_prefixes_of_other_strengths_are_not_reused(llama: core.LoadedModel, lora: Path) -> None:
    store = core.PrefixStore()

    def reused(adapters: Any) -> int:
        run = core.run(llama, core.Request([5, 6, 7, 8], {"max_new_tokens": 3}, adapters=adapters), prefixes=store)
        return next(event.reused for event in run.events if isinstance(event, core.events.Prefilled))

    assert [reused([(lora, 0.5)]), reused([lora]), reused(()), reused([lora])] == [0, 0, 0, 3]


def test_runs_record_their_adapters(llama: core.LoadedModel, lora: Path) -> None:
    started = core.run(llama, core.Request([5], {"max_new_tokens": 1}, adapters=[(lora, 0.25)])).events[0]
    assert isinstance(started, core.events.RunStarted)
    (used,) = started.adapters
    assert (used.name, used.strength, len(used.digest)) == ("lora", 0.25, 32)


def test_effect_of_the_adapter_on_a_step(llama: core.LoadedModel, lora: Path) -> None:
    ids = [5, 6, 7, 8]
    found = core.adapter_effect(llama, ids, 3, adapters=[lora], top_n=3)
    before = logits_of(llama.model, torch.tensor([ids[:3]]))[0, -1].softmax(-1)
    llama.adapters.set([lora])
    after = logits_of(llama.model, torch.tensor([ids[:3]]))[0, -1].softmax(-1)
    assert found.chosen.id == 8
    assert found.chosen.before == pytest.approx(float(before[8]), rel=1e-4)
    assert found.chosen.after == pytest.approx(float(after[8]), rel=1e-4)
    assert found.divergence == pytest.approx(float((after * (after / before).log()).sum()), rel=1e-3)
    tops = {*after.topk(3).indices.tolist(), *before.topk(3).indices.tolist(), 8}
    assert {one.id for one in found.changes} == tops
    assert found.changes[0].rank_after == 1
    llama.adapters.set([])
    with pytest.raises(core.errors.InsideError, match="No adapter"):
        core.adapter_effect(llama, ids, 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("flavour", ["transformers", "core"])
def test_script_writes_the_same_text(flavour: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = core.load("storyteller")
    assert isinstance(model, core.LoadedModel)
    save_lora(model, tmp_path / "one", 1, target_modules=["q_proj", "down_proj"])
    save_lora(model, tmp_path / "two", 2, target_modules=["v_proj"])
    request = core.Request(
        "Once upon a time", {"max_new_tokens": 12}, adapters=[(tmp_path / "one", 0.5), tmp_path / "two"]
    )
    code = core.as_code(request, flavour, model="storyteller")
    assert ("from peft import PeftModel" in code) == (flavour == "transformers")
    capsys.readouterr()
    exec(compile(code, "script.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.strip() == core.run(model, request).texts[0].strip()


def test_script_explains_that_peft_cannot_read_gguf(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    request = core.Request("x", adapters=[tmp_path / "a.gguf"])
    assert "PEFT does not read" in core.why_not_generate(request, model="storyteller")


# GGUF


def write_gguf_adapter(model: core.LoadedModel, folder: Path, path: Path, architecture: str = "llama") -> Path:
    """Write a PEFT adapter as llama.cpp's converter does."""
    gguf = pytest.importorskip("gguf")
    heads, kv_heads = model.config.num_attention_heads, model.config.num_key_value_heads
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32(
        "adapter.lora.alpha", float(json.loads((folder / "adapter_config.json").read_text())["lora_alpha"])
    )
    names = {
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }  # fmt: skip
    for key, tensor in load_file(folder / "adapter_model.safetensors").items():
        layer, _, rest = key.removeprefix("base_model.model.model.layers.").partition(".")
        stem, part = rest.removesuffix(".weight").rsplit(".", 1)
        if part == "lora_B" and stem.endswith(("q_proj", "k_proj")):
            count = heads if stem.endswith("q_proj") else kv_heads
            tensor = tensor.view(count, 2, -1, tensor.shape[1]).transpose(1, 2).reshape(tensor.shape)
        name = f"blk.{layer}.{names[stem]}.weight.{'lora_a' if part == 'lora_A' else 'lora_b'}"
        writer.add_tensor(name, tensor.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_gguf_adapter_equals_the_peft_one(llama: core.LoadedModel, lora: Path, tmp_path: Path) -> None:
    adapter = write_gguf_adapter(llama, lora, tmp_path / "lora.gguf")
    llama.adapters.set([(lora, 0.7)])
    expected = logits_of(llama.model)
    llama.adapters.set([(adapter, 0.7)])
    torch.testing.assert_close(logits_of(llama.model), expected, **EXACT)
    assert llama.adapters.loaded[str(adapter)].kind == "LoRA (GGUF)"
    base = core.load(save_gguf(llama_without(llama), tmp_path / "base.gguf", "F32"), adapters=[(adapter, 0.7)])
    assert isinstance(base, core.LoadedModel)
    torch.testing.assert_close(logits_of(base.model), expected, rtol=0, atol=1e-4)


def llama_without(model: core.LoadedModel) -> core.LoadedModel:
    """Return the model without adapters in effect."""
    model.adapters.set([])
    return model


@pytest.mark.parametrize("case", ["llama", "gpt2", "embedding", "dora", "replaced"])
def test_gguf_export_contains_the_adapter(case: str, tmp_path: Path) -> None:
    kind, settings = CASES[case]
    model = make(kind)
    save_lora(model, tmp_path / "lora", **settings)
    model.adapters.set([(tmp_path / "lora", 0.5)])
    notes: list[str] = []
    again = core.load(save_gguf(model, tmp_path / "merged.gguf", "F32", notes))
    assert "merged into it: lora" in notes[0]
    assert isinstance(again, core.LoadedModel)
    torch.testing.assert_close(logits_of(again.model), logits_of(model.model), rtol=0, atol=1e-4)


# What does not fit


def _edited(change: Callable[[dict[str, Any], dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        config = json.loads((folder / "adapter_config.json").read_text())
        tensors = load_file(folder / "adapter_model.safetensors")
        change(config, tensors)
        (folder / "adapter_config.json").write_text(json.dumps(config))
        save_file(tensors, folder / "adapter_model.safetensors")

    return edit


def _first(tensors: dict[str, torch.Tensor], part: str = "lora_A") -> str:
    return next(name for name in tensors if part in name)


def _pop(tensors: dict[str, torch.Tensor]) -> None:
    tensors.pop(_first(tensors))


def _nan(tensors: dict[str, torch.Tensor]) -> None:
    tensors[_first(tensors)][0, 0] = float("nan")


def _wide(tensors: dict[str, torch.Tensor]) -> None:
    tensors[_first(tensors)] = torch.zeros(4, 65)


def _add_unknown_layer(tensors: dict[str, torch.Tensor]) -> None:
    for part, shape in (("A", (4, 64)), ("B", (64, 4))):
        tensors[f"base_model.model.model.layers.7.self_attn.q_proj.lora_{part}.weight"] = torch.zeros(shape)


def _vocabulary(tensors: dict[str, torch.Tensor]) -> None:
    tensors["base_model.model.lm_head.weight"] = torch.zeros(300, 64)


def _norm(tensors: dict[str, torch.Tensor]) -> None:
    for part, shape in (("A", (4, 64)), ("B", (64, 4))):
        tensors[f"base_model.model.model.norm.lora_{part}.weight"] = torch.zeros(shape)


def _convert(tensors: dict[str, torch.Tensor], dtype: torch.dtype) -> None:
    tensors[_first(tensors)] = tensors[_first(tensors)].to(dtype)


def _replace_norm(tensors: dict[str, torch.Tensor], value: torch.Tensor) -> None:
    tensors["base_model.model.model.norm.weight"] = value


def _add_unknown_name(tensors: dict[str, torch.Tensor]) -> None:
    tensors["lora_A"] = torch.zeros(4, 64)


def _long_name(tensors: dict[str, torch.Tensor]) -> None:
    for part, shape in (("A", (4, 64)), ("B", (64, 4))):
        tensors[f"base_model.model.{'z' * 100_000}.lora_{part}.weight"] = torch.zeros(shape)


def _falsify_header(folder: Path, **entry: Any) -> None:
    """Change an entry in the header of the weights, and leave their bytes."""
    file = folder / "adapter_model.safetensors"
    raw = file.read_bytes()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:end])
    header[next(name for name in header if "lora_A" in name)].update(entry)
    changed = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(changed)) + changed + raw[end:])


def _link_to_itself(file: Path) -> None:
    file.unlink(missing_ok=True)
    try:
        file.symlink_to(file.name)
    except OSError:
        pytest.skip("this system does not allow links")


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "kind": (_edited(lambda config, _: config.update(peft_type="IA3")), "IA3"),
    "no kind": (_edited(lambda config, _: config.pop("peft_type")), "None"),
    "rank zero": (_edited(lambda config, _: config.update(r=0)), "rank 0"),
    "rank": (_edited(lambda config, _: config.update(r=5)), "rank is 5"),
    "scale": (_edited(lambda config, _: config.update(lora_alpha="much")), "not a number"),
    "activated": (_edited(lambda config, _: config.update(alora_invocation_tokens=[1])), "aLoRA"),
    "pissa": (_edited(lambda config, _: config.update(init_lora_weights="pissa")), "changes the weights"),
    "one matrix": (_edited(lambda _, tensors: _pop(tensors)), "only one of the two"),
    "nan": (_edited(lambda _, tensors: _nan(tensors)), "not finite"),
    "shape": (_edited(lambda _, tensors: _wide(tensors)), "65"),
    "layer": (_edited(lambda _, tensors: _add_unknown_layer(tensors)), "layers.7"),
    "vocabulary": (_edited(lambda _, tensors: _vocabulary(tensors)), "300 tokens"),
    "norm": (_edited(lambda _, tensors: _norm(tensors)), "RMSNorm"),
    "empty": (_edited(lambda _, tensors: tensors.clear()), "no weights"),
    "no weights": (lambda folder: (folder / "adapter_model.safetensors").unlink(), "adapter_model.safetensors"),
    "no config": (lambda folder: (folder / "adapter_config.json").unlink(), "adapter_config.json"),
    "damaged": (lambda folder: (folder / "adapter_model.safetensors").write_bytes(b"\xff" * 40) and None, "corrupt"),
    "rank negative": (_edited(lambda config, _: config.update(r=-1)), "rank -1"),
    "rank infinite": (_edited(lambda config, _: config.update(r=float("inf"))), "rank inf"),
    "rank list": (_edited(lambda config, _: config.update(r=[[1]])), "not a number"),
    "rank huge": (_edited(lambda config, _: config.update(r=10**400, use_rslora=True)), "states the rank 1000"),
    "scale huge": (_edited(lambda config, _: config.update(lora_alpha=10**400)), "states the scale 1000"),
    "scale nan": (_edited(lambda config, _: config.update(alpha_pattern={"q_proj": float("nan")})), "scale nan"),
    "integers": (_edited(lambda _, tensors: _convert(tensors, torch.int8)), "int8"),
    "scalar": (_edited(lambda _, tensors: _replace_norm(tensors, torch.tensor(1.0))), "model's is 64"),
    "nameless": (_edited(lambda _, tensors: _add_unknown_name(tensors)), "unknown meaning"),
    "long name": (_edited(lambda _, tensors: _long_name(tensors)), "zzz…"),
    "lying offsets": (lambda folder: _falsify_header(folder, data_offsets=[0, 10**12]), "bytes are present"),
    "lying shape": (lambda folder: _falsify_header(folder, shape=[1, 1]), "contradicts its content"),
    "lying type": (lambda folder: _falsify_header(folder, dtype="F4"), "contradicts its content"),
    "weights loop": (lambda folder: _link_to_itself(folder / "adapter_model.safetensors"), "no weights"),
    "config loop": (lambda folder: _link_to_itself(folder / "adapter_config.json"), "adapter_config.json"),
    "not json": (lambda folder: (folder / "adapter_config.json").write_text("{") and None, "JSON"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_adapter_raises_an_error_with_a_remedy(fault: str, llama: core.LoadedModel, lora: Path) -> None:
    edit, named = FAULTS[fault]
    edit(lora)
    before = logits_of(llama.model)
    with pytest.raises(DecodescopeError, match=named) as caught:
        llama.adapters.set([lora])
    assert isinstance(caught.value, (AdapterError, CorruptWeightsError, core.errors.ModelError))
    assert caught.value.remedy
    assert len(str(caught.value)) < 500
    assert torch.equal(logits_of(llama.model), before)
    assert not llama.adapters.active


def test_float8_adapter_works(llama: core.LoadedModel, lora: Path) -> None:
    norm = (llama.model.get_parameter("model.norm.weight").detach() * 2).to(torch.float8_e4m3fn)
    _edited(lambda _, tensors: _replace_norm(tensors, norm))(lora)
    llama.adapters.set([lora])
    assert torch.equal(llama.model.get_parameter("model.norm.weight"), norm.float())


def test_overwriting_an_adapter_in_use_keeps_its_weights(llama: core.LoadedModel, lora: Path) -> None:
    """A training run overwrites its adapter in place."""
    llama.adapters.set([lora])
    expected = logits_of(llama.model)
    file = lora / "adapter_model.safetensors"
    size = file.stat().st_size
    assert not llama.adapters.is_outdated(lora)
    with file.open("r+b") as stream:
        stream.seek(size // 2)
        stream.write(b"\x41" * (size // 3))
    os.utime(file, (0, 0))
    llama.adapters.set([(lora, 0.5)])
    llama.adapters.set([lora])
    assert torch.equal(logits_of(llama.model), expected)
    assert llama.adapters.is_outdated(lora)
    llama.adapters.remove(lora)
    llama.adapters.set([lora])
    assert not torch.equal(logits_of(llama.model), expected)
    shutil.rmtree(lora)
    assert not llama.adapters.is_outdated(lora)


def test_adapter_that_does_not_fit_names_its_base_model(lora: Path) -> None:
    _edited(lambda config, _: config.update(base_model_name_or_path="acme/big"))(lora)
    other = gguf_models.make("gpt2")
    with pytest.raises(AdapterError, match="does not fit") as caught:
        other.adapters.set([lora])
    assert "acme/big" in caught.value.remedy


def test_pickled_weights_need_permission(llama: core.LoadedModel, lora: Path) -> None:
    file = lora / "adapter_model.safetensors"
    torch.save(load_file(file), lora / "adapter_model.bin")
    llama.adapters.set([lora])
    expected = logits_of(llama.model)
    llama.adapters.remove(lora)
    file.unlink()
    with pytest.raises(PickledWeightsError):
        llama.adapters.set([lora])
    llama.adapters.set([lora], allow_pickle=True)
    assert torch.equal(logits_of(llama.model), expected)


def test_catastrophic_regex_patterns_are_not_evaluated(llama: core.LoadedModel, lora: Path) -> None:
    _edited(lambda config, _: config.update(rank_pattern={"(([a-z_.0-9]+)+)+x": 9}))(lora)
    llama.adapters.set([lora])
    assert llama.adapters.active


@pytest.mark.parametrize(
    "value", ["a path", 5, [5], [("a", "b")], [("a", float("nan"))], [("a", 9.0)], ["a", "a"], [""], [("a", True)]]
)
def test_arguments_are_checked(value: Any, llama: core.LoadedModel) -> None:
    with pytest.raises(ParameterError):
        llama.adapters.set(value)


def test_missing_adapter_raises_an_error(llama: core.LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="no adapter at"):
        core.run(llama, core.Request([5], adapters=[tmp_path / "none"]))
    with pytest.raises(AdapterError, match="not an adapter"):
        llama.adapters.set([tmp_path])


@pytest.mark.parametrize("name", ["~nobody-here/lora", "x" * 5000, "a\0b", "owner/" + "n" * 500, "\ud800"])
def test_invalid_adapter_file_names_raise_an_error(name: str, llama: core.LoadedModel) -> None:
    with pytest.raises(AdapterError, match="no adapter at"):
        llama.adapters.set([name])
    problem = core.adapters.adapter_problem(name)
    assert problem is not None
    assert "Errno" not in problem[0]


@pytest.mark.parametrize("strength", ["nan", "inf", "-1e999", "9"])
def test_strength_out_of_range_is_named_in_the_error(strength: str) -> None:
    with pytest.raises(ParameterError, match=f"strength of the adapter a is {float(strength)}"):
        core.adapters.parse_choice(f"a={strength}")
    with pytest.raises(ParameterError, match="strength of the adapter a is 1000"):
        core.adapters.check_adapters([("a", 10**400)])


def test_folder_linking_to_itself_raises_adapter_error(llama: core.LoadedModel, tmp_path: Path) -> None:
    _link_to_itself(tmp_path / "loop")
    with pytest.raises(AdapterError, match="no adapter at"):
        llama.adapters.set([tmp_path / "loop"])
    problem = core.adapters.adapter_problem(str(tmp_path / "loop"))
    assert problem is not None
    assert "Errno" not in problem[0]


def test_faulty_gguf_adapter_raises_an_error(llama: core.LoadedModel, lora: Path, tmp_path: Path) -> None:
    adapter = write_gguf_adapter(llama, lora, tmp_path / "lora.gguf")
    with pytest.raises(AdapterError, match="architecture"):
        gguf_models.make("gpt2").adapters.set([adapter])
    with pytest.raises(core.errors.ModelError, match="adapter"):
        core.load(adapter)
    model = save_gguf(llama_without(llama), tmp_path / "model.gguf", "F32")
    with pytest.raises(AdapterError, match="not an adapter"):
        llama.adapters.set([model])
    raw = adapter.read_bytes()
    for cut in (0, 7, 40, len(raw) // 2, len(raw) - 1):
        (tmp_path / "cut.gguf").write_bytes(raw[:cut])
        with pytest.raises(DecodescopeError):
            llama.adapters.set([tmp_path / "cut.gguf"])
    (tmp_path / "many.gguf").write_bytes(raw[:8] + struct.pack("<Q", 2**60) + raw[16:])
    with pytest.raises(DecodescopeError):
        llama.adapters.set([tmp_path / "many.gguf"])


def test_copies_do_not_share_strengths(llama: core.LoadedModel, lora: Path) -> None:
    """Two models of one architecture have their own adapters."""
    twin = core.wrap(copy.deepcopy(llama.model), llama.tokenizer)
    llama.adapters.set([lora])
    assert not torch.equal(logits_of(llama.model), logits_of(twin.model))
