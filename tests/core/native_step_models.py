"""Models on which the native decode step is tested, and helpers that return their steps."""

from __future__ import annotations

import torch
from transformers import (
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from decodescope import core
from decodescope.core.decoding.forward.native_step import NativeDecodeStep, get_native_step
from tests.core.test_fused_passes import family, qwen2


def model_of(kind: str) -> core.LoadedModel:
    return qwen2() if kind == "qwen2" else family(kind)


def step_of(model: core.LoadedModel) -> NativeDecodeStep:
    step = get_native_step(model, DynamicCache())
    assert step is not None
    return step


def wide_model(kind: str) -> core.LoadedModel:
    """Create a Llama-like model with heads of width 32; some share keys, some have norms, some have biases."""
    torch.manual_seed(0)
    config, network = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
        "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    }[kind]
    made = network(config(
        vocab_size=61, hidden_size=48, intermediate_size=72, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=32, max_position_embeddings=256,
    ))  # fmt: skip
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return core.wrap(made)
