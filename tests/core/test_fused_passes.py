"""Fused passes equal the module, and fall back where they are not supported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers as t
from transformers import DynamicCache, GenerationConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from decodescope import core
from decodescope.core.decoding.forward import fused_decoder as lean_module
from decodescope.core.decoding.forward.fused_decoder import (
    FusedDecoder,
    get_fused_decoder,
    has_growing_layers,
    select_fused_pass,
)
from tests.core import tiny


def qwen2() -> core.LoadedModel:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=61, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256,
    )  # fmt: skip
    network = Qwen2ForCausalLM(config)
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return core.wrap(network)


def scaled_rope() -> core.LoadedModel:
    rope = {"rope_type": "linear", "factor": 3.0, "rope_theta": 10_000.0}
    return tiny.make("llama", rope_parameters=rope)


MODELS = {
    "llama": lambda: tiny.make("llama"),
    "one head each": lambda: tiny.make("llama", num_key_value_heads=4),
    "qwen3": lambda: tiny.make("qwen3"),
    "qwen2": qwen2,
    "mistral": lambda: tiny.make("mistral", sliding_window=None),
    "scaled rope": scaled_rope,
}


@torch.no_grad()
def both(model: core.LoadedModel, rows: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of 40 tokens in uneven portions: the module's and the lean pass's."""
    lean = get_fused_decoder(model)
    assert lean is not None
    ids = torch.randint(3, 61, (rows, 40), generator=torch.Generator().manual_seed(1))
    result, reference, outputs = DynamicCache(config=model.config), DynamicCache(config=model.config), []
    for portion in torch.split(ids, [12, 1, 1, 5, 1, 20], dim=1):
        outputs.append((lean(portion, result, 0), model.model(portion, **{model.cache_name: reference}).logits))
    return torch.cat([a for a, _ in outputs], 1), torch.cat([b for _, b in outputs], 1)


@pytest.mark.parametrize("largest", [lean_module.MAX_JOINED_BYTES, 0])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_fused_pass_equals_the_module_logits(
    name: str, rows: int, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With matrices joined, and, as for models too large to be copied, without."""
    monkeypatch.setattr(lean_module, "MAX_JOINED_BYTES", largest)
    result, reference = both(MODELS[name](), rows)
    torch.testing.assert_close(result, reference, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("past", [0, 9])
@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_neox", "gemma2", "gemma3"])
@torch.no_grad()
def test_fused_pass_keeps_only_the_requested_positions(kind: str, past: int) -> None:
    lean = get_fused_decoder(family(kind))
    assert lean is not None
    ids, whole = torch.tensor([tiny.prompt(20), tiny.prompt(21)[1:]]), DynamicCache()
    lean(ids[:, :past], whole, 0) if past else None
    wanted = lean(ids[:, past:], whole, 0)
    for keep in (1, 4, 30):
        cache = DynamicCache()
        lean(ids[:, :past], cache) if past else None
        torch.testing.assert_close(lean(ids[:, past:], cache, keep), wanted[:, -keep:], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(cache.layers[-1].keys, whole.layers[-1].keys)  # all of it is kept


def test_fused_pass_with_tree_mask_and_positions_equals_module() -> None:
    """Two children of one parent, in one pass, equal two passes of their own."""
    model = tiny.make("llama")
    lean = get_fused_decoder(model)
    assert lean is not None
    low = torch.finfo(torch.float32).min
    mask = torch.tensor([[0, 0, 0, 0, low], [0, 0, 0, low, 0]])[None, None]
    with torch.no_grad():
        cache = DynamicCache(config=model.config)
        lean(torch.tensor([[5, 6, 7]]), cache)
        result = lean(torch.tensor([[8, 9]]), cache, 0, mask, torch.tensor([[3, 3]]))
        reference = [model.model(torch.tensor([[5, 6, 7, child]])).logits[0, -1] for child in (8, 9)]
    torch.testing.assert_close(result[0], torch.stack(reference), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["t5", "bart", "mamba"])
def test_unsupported_models_use_the_module(kind: str) -> None:
    assert select_fused_pass(tiny.shared(kind), DynamicCache()) is None


def test_models_that_fail_the_check_use_the_module() -> None:
    granite = t.GraniteForCausalLM(t.GraniteConfig(**{**tiny._SMALL, "residual_multiplier": 0.3}))
    granite.config.embedding_multiplier = 7.0  # another than the trunk's own
    assert get_fused_decoder(core.wrap(granite)) is None
    half = tiny.make("llama").model.to(torch.float16)
    assert select_fused_pass(core.wrap(half), DynamicCache()) is None


_MOE = {**tiny._SMALL, "num_experts_per_tok": 2}
_OLD = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_FAMILIES: dict[str, Callable[[], Any]] = {
    "opt": lambda: t.OPTForCausalLM(
        t.OPTConfig(**_OLD, ffn_dim=64, max_position_embeddings=64, word_embed_proj_dim=32)
    ),
    "gpt_neox": lambda: t.GPTNeoXForCausalLM(t.GPTNeoXConfig(**_OLD, intermediate_size=64, max_position_embeddings=64)),
    "phi3": lambda: t.Phi3ForCausalLM(t.Phi3Config(**tiny._SMALL)),
    "mixtral": lambda: t.MixtralForCausalLM(t.MixtralConfig(**{**_MOE, "num_local_experts": 4})),
    "qwen2_moe": lambda: t.Qwen2MoeForCausalLM(
        t.Qwen2MoeConfig(**{**_MOE, "num_experts": 4, "moe_intermediate_size": 32})
    ),
}


def family(kind: str) -> core.LoadedModel:
    """A tiny model with weights far from zero, biases and norms included."""
    if kind in tiny.ALL:
        return tiny.make(kind)
    torch.manual_seed(0)
    network = _FAMILIES[kind]().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(4).add_(0.1 * torch.randn_like(weight))
    return core.wrap(network)


@pytest.mark.parametrize("kind", ["gpt2", "mistral", "gemma2", "gemma3", *_FAMILIES])
@torch.inference_mode()
def test_fused_pass_of_every_family_equals_the_module(kind: str) -> None:
    """The same logits in uneven portions, past every window; the same tokens as `generate`."""
    model = family(kind)
    lean = select_fused_pass(model, DynamicCache())
    assert isinstance(lean, FusedDecoder)
    ids, result, reference = torch.tensor([tiny.prompt(30), tiny.prompt(30, 1)]), DynamicCache(), DynamicCache()
    for portion in ids.split([12, 1, 5, 1, 11], 1):
        wanted = model.model(portion, **{model.cache_name: reference}).logits
        torch.testing.assert_close(lean(portion, result, 0), wanted, rtol=1e-4, atol=2e-4)
    prompt, config = tiny.prompt(), GenerationConfig(max_new_tokens=12)
    assert core.run(model, core.Request(prompt, config)).sequences == tiny.reference(model, prompt, config)


@torch.inference_mode()
def test_tree_after_a_sliding_window_equals_single_passes() -> None:
    """Two children of one parent, in one pass, equal two passes of their own."""
    model, text = tiny.make("gemma3"), tiny.prompt(12)
    lean, cache = get_fused_decoder(model), DynamicCache()
    assert lean is not None
    low = torch.finfo(torch.float32).min
    mask = torch.tensor([[0.0] * 12 + [0, low], [0.0] * 12 + [low, 0]])[None, None]
    lean(torch.tensor([text]), cache)
    result = lean(torch.tensor([[8, 9]]), cache, 0, mask, torch.tensor([[12, 12]]))
    reference = [model.model(torch.tensor([[*text, child]])).logits[0, -1] for child in (8, 9)]
    torch.testing.assert_close(result[0], torch.stack(reference), rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_fused_pass_supports_bfloat16_and_int8() -> None:
    half = core.wrap(tiny.make("llama").model.to(torch.bfloat16))
    packed = core.load("storyteller", weights="int8")
    for model, share in ((half, 0.04), (packed, 1e-4)):
        lean, ids = select_fused_pass(model, DynamicCache()), torch.tensor([tiny.prompt(12)])
        assert isinstance(lean, FusedDecoder)
        wanted = model.model(ids).logits.float()
        assert (lean(ids, DynamicCache(), 0) - wanted).abs().max() < share * wanted.abs().max()


def count_calls(model: core.LoadedModel) -> list[int]:
    calls: list[int] = []
    original = model.model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        return original(*args, **kwargs)

    model.model.forward = forward
    return calls


def test_a_patched_forward_is_called() -> None:
    model, request = tiny.make("llama"), core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=5))
    before = core.run(model, request).sequences
    calls = count_calls(model)
    assert core.run(model, request).sequences == before
    assert len(calls) == len(before[0])


def test_hooks_left_by_hidden_states_keep_the_fused_pass() -> None:
    """transformers leaves hooks of its own in a model whose hidden states were requested."""
    model = tiny.make("llama")
    core.run(model, core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=3, dola_layers="high")))
    assert any(module._forward_hooks for module in model.model.modules())
    assert select_fused_pass(model, DynamicCache()) is not None


def test_a_hook_is_called() -> None:
    model, request = tiny.make("llama"), core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=5))
    core.run(model, request)
    seen: list[int] = []
    model.model.model.layers[1].register_forward_hook(lambda *args: seen.append(1))
    core.run(model, request)
    assert seen


def test_fused_pass_uses_changed_weights() -> None:
    model, request = tiny.make("llama"), core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=12))
    core.run(model, request)
    with torch.no_grad():
        model.model.model.layers[0].self_attn.q_proj.weight.normal_()
    assert core.run(model, request).sequences == tiny.reference(model, tiny.prompt(), request.config)


def test_subclass_uses_the_module() -> None:
    class Other(LlamaForCausalLM):
        pass

    assert select_fused_pass(core.wrap(Other(tiny.make("llama").model.config)), DynamicCache()) is None


def test_fused_pass_requires_a_plain_dynamic_cache() -> None:
    model = tiny.shared("mistral")
    assert has_growing_layers(DynamicCache())
    assert not has_growing_layers(DynamicCache(config=model.config))
    assert not has_growing_layers(None)
