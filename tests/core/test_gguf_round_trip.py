"""Every field of every architecture's config is in the file that is written, or the export is refused by its name."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from decodescope import core
from decodescope.core.errors import UnpackableError
from decodescope.core.models import model_saving
from decodescope.core.models.model_saving import save_gguf
from tests.core import gguf_models
from tests.core.gguf_fields import FieldChange, UnchangedModels, changes, logits

_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
_DEEPSEEK = {
    "rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "original_max_position_embeddings": 4096,
    "beta_fast": 32, "beta_slow": 1, "mscale": 0.707, "mscale_all_dim": 0.707,
}  # fmt: skip
_LONG = {
    "rope_type": "longrope", "rope_theta": 10000.0, "long_factor": [2.0] * 8, "short_factor": [1.5] * 8,
    "original_max_position_embeddings": 16,
}  # fmt: skip
_WINDOWS = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0}
WRITTEN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mistral", {"sliding_window": 4}), ("mixtral", {"sliding_window": 4}), ("phi3", {"sliding_window": 4}),
    *((kind, _WINDOWS) for kind in ("qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "starcoder2", "smollm3")),
    ("exaone4", {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}),
    ("gemma2", {"layer_types": ["full_attention", "sliding_attention"]}), ("cohere2", {"sliding_window": 4}),
    ("llama", {"rope_parameters": {**_YARN, "attention_factor": 0.7, "beta_fast": 8.0, "beta_slow": 2.0}}),
    ("llama", {"rope_parameters": _LONG}), ("deepseek_v2", {"rope_parameters": _DEEPSEEK}),
    ("deepseek_v3", {"rope_parameters": _DEEPSEEK}), ("gemma2", {"query_pre_attn_scalar": 64}),
    ("gemma3_text", {"query_pre_attn_scalar": 64}), ("gemma2", {"attn_logit_softcapping": 5.0}),
    ("qwen3_moe", {"norm_topk_prob": False}), ("qwen2_moe", {"norm_topk_prob": True}),
    ("olmoe", {"norm_topk_prob": True}), ("olmo", {"clip_qkv": 0.1}), ("cohere", {"use_qk_norm": True}),
    ("lfm2_moe", {"routed_scaling_factor": 2.0}), ("granite", {"attention_multiplier": 0.9}),
)  # fmt: skip
REFUSED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("llama", {"hidden_act": "gelu"}, "hidden_act"), ("gpt2", {"activation_function": "relu"}, "activation_function"),
    ("gemma2", {"hidden_activation": "relu"}, "hidden_activation"), ("arcee", {"hidden_act": "gelu"}, "hidden_act"),
    ("llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}}, "rope_parameters"),
    ("gemma2", {"final_logit_softcapping": None}, "final_logit_softcapping"),
    ("smollm3", {"no_rope_layers": [1, 0, 1, 1]}, "no_rope_layers"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
    ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights"), ("gpt_oss", {"swiglu_limit": 2.0}, "swiglu_limit"),
    ("bloom", {"apply_residual_connection_post_layernorm": True}, "apply_residual_connection_post_layernorm"),
    ("falcon", {"alibi": True}, "alibi"), ("falcon", {"parallel_attn": False}, "parallel_attn"),
    ("phi", {"qk_layernorm": True}, "qk_layernorm"), ("qwen3_moe", {"mlp_only_layers": [0]}, "mlp_only_layers"),
    ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step"),
)  # fmt: skip


@pytest.mark.every(4)
@pytest.mark.parametrize(("kind", "shape"), WRITTEN)
def test_export_with_unusual_settings_keeps_the_logits(kind: str, shape: dict[str, Any], tmp_path: Path) -> None:
    model = gguf_models.make(kind, **shape)
    read = core.load(save_gguf(model, tmp_path / "tiny.gguf", "F32", []), device="cpu")
    expected = logits(model.model)
    assert (logits(read.model) - expected).abs().max() <= 1e-4 * expected.abs().max()


@pytest.mark.every(3)
@pytest.mark.parametrize(("kind", "shape", "field"), REFUSED)
def test_export_of_a_setting_without_a_key_is_refused_by_name(
    kind: str, shape: dict[str, Any], field: str, tmp_path: Path
) -> None:  # fmt: skip
    with pytest.raises(UnpackableError, match=field) as refused:
        save_gguf(gguf_models.make(kind, **shape), tmp_path / "tiny.gguf", "F32")
    assert refused.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_export_of_layers_with_configs_of_their_own_is_refused(tmp_path: Path) -> None:
    model = gguf_models.make("qwen3")
    model.config.per_layer_config = {1: {"rms_norm_eps": 0.1}}
    with pytest.raises(UnpackableError, match=r"rms_norm_eps \(per_layer_config\)"):
        save_gguf(model, tmp_path / "tiny.gguf", "F32")


def check_changes(kind: str, some: Any, tmp_path: Path) -> Counter[str]:
    """Assert that each change that has an effect is written or refused by name; return how many are."""
    bench, found = UnchangedModels(kind, tmp_path), Counter[str]()
    for change in some:
        network = bench.network(change)
        if network is not None:
            outcome = bench.outcome(change, network)
            assert outcome.result in {"right", "refused"}, (change, outcome)
            found[outcome.result] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", gguf_models.KINDS)
def test_every_field_is_written_or_refused_by_name(kind: str, tmp_path: Path) -> None:
    found = check_changes(kind, changes(kind), tmp_path)
    assert found["right"] > 5
    assert found["refused"] > 0


@pytest.mark.parametrize("kind", ["qwen3", "gemma3_text", "deepseek_v3"])
def test_every_thirtieth_change_is_written_or_refused_by_name(kind: str, tmp_path: Path) -> None:
    some: list[FieldChange] = list(itertools.islice(changes(kind), 7, None, 30))
    assert sum(check_changes(kind, some, tmp_path).values()) > 1


def test_export_of_a_model_with_windows_writes_the_same_text(tmp_path: Path) -> None:
    """Long enough that tokens leave the window of 64."""
    model = core.load("storyteller-window", device="cpu", weights="float32")
    with pytest.warns(UserWarning, match=r"llama.cpp does not read llama.attention.sliding_window"):
        read = core.load(save_gguf(model, tmp_path / "window.gguf", "F32"), device="cpu")
    request = core.Request("Once upon a time", {"max_new_tokens": 120, "do_sample": False})
    assert core.run(read, request).texts == core.run(model, request).texts
    assert torch.allclose(gguf_models.logits(read, [5] * 100), gguf_models.logits(model, [5] * 100), atol=1e-4)


def test_tied_weights_that_differ_in_memory_are_both_written(tmp_path: Path) -> None:
    model = gguf_models.make("gemma2")
    assert model.config.tie_word_embeddings
    model.model.lm_head.weight = torch.nn.Parameter(model.model.lm_head.weight.detach() * 1.5)
    read = core.load(save_gguf(model, tmp_path / "tiny.gguf", "F32"), device="cpu")
    expected = logits(model.model)
    assert (logits(read.model) - expected).abs().max() <= 1e-4 * expected.abs().max()


@pytest.mark.parametrize("kind", ["lfm2_moe", "deepseek_v3"])
def test_biases_of_routers_that_are_buffers_are_written(kind: str, tmp_path: Path) -> None:
    model = gguf_models.make(kind)
    for name, buffer in model.model.named_buffers():
        if name.endswith("_bias"):
            buffer.copy_(torch.randn(buffer.shape, generator=torch.Generator().manual_seed(3)))
    read = core.load(save_gguf(model, tmp_path / "tiny.gguf", "F32"), device="cpu")
    expected = logits(model.model)
    assert (logits(read.model) - expected).abs().max() <= 1e-4 * expected.abs().max()


@pytest.mark.parametrize("kind", ["mixtral", "gpt_oss"])
def test_experts_of_a_model_in_blocks_are_written_again(kind: str, tmp_path: Path) -> None:
    first = save_gguf(gguf_models.make(kind), tmp_path / "first.gguf", "Q8_0")
    again = save_gguf(core.load(first, device="cpu"), tmp_path / "again.gguf", "F32")
    expected = logits(core.load(first, device="cpu", weights="float32").model)
    found = logits(core.load(again, device="cpu").model)
    assert (found - expected).abs().max() <= 1e-4 * expected.abs().max()


def test_export_without_a_weight_of_the_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = model_saving._weights
    monkeypatch.setattr(
        model_saving, "_weights", lambda model: (one for one in kept(model) if "layers.1.mlp.up" not in one[0])
    )
    with pytest.raises(UnpackableError, match=r"model\.layers\.1\.mlp\.up_proj\.weight is missing"):
        save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "F32")


def test_own_decoding_settings_are_written_or_named(tmp_path: Path) -> None:
    model, notes = gguf_models.make("llama"), list[str]()
    model.generation_config.update(do_sample=True, temperature=0.7, top_k=20, top_p=0.9, repetition_penalty=1.1)
    model.generation_config.update(no_repeat_ngram_size=3, suppress_tokens=[7, 9])
    read = core.load(save_gguf(model, tmp_path / "tiny.gguf", "F32", notes), device="cpu").generation_config
    assert read.do_sample
    assert (read.temperature, read.top_p) == pytest.approx((0.7, 0.9))
    assert (read.top_k, read.repetition_penalty) == pytest.approx((20, 1.1))
    assert read.suppress_tokens == [7, 9]
    assert any("no_repeat_ngram_size" in note for note in notes)


def test_export_without_a_tokenizer_keeps_the_end_of_text(tmp_path: Path) -> None:
    model = core.wrap(gguf_models.make("llama").model, None, "tiny")
    read = core.load(save_gguf(model, tmp_path / "tiny.gguf", "F32"), device="cpu")
    assert read.tokenizer is None
    assert read.generation_config.eos_token_id == model.generation_config.eos_token_id == 257
