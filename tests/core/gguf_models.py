"""Tiny random models of the architectures that GGUF files contain, with a tokenizer that llama.cpp reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from decodescope import core
from decodescope.core.models.gguf.export import export_model
from decodescope.core.models.model_saving import exported_model

SHAPE = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 128, "vocab_size": 259, "max_position_embeddings": 256, "bos_token_id": 256,
    "eos_token_id": 257, "pad_token_id": 258,
}  # fmt: skip
_LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
_EXPERTS = {"num_experts": 4, "moe_intermediate_size": 64, "num_experts_per_tok": 2}
_LATENT = {
    "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "num_key_value_heads": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 32, "n_group": 1,
    "topk_group": 1, "first_k_dense_replace": 1,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama3": {"model_type": "llama", "rope_parameters": _LLAMA3, "max_position_embeddings": 131072},
    "llama-linear": {
        "model_type": "llama", "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
        "attention_bias": True, "mlp_bias": True,
    },
    "mistral": {"sliding_window": None},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 64},
    "qwen2": {},
    "qwen2_moe": {**_EXPERTS, "shared_expert_intermediate_size": 64},
    "qwen3": {"head_dim": 32},
    "qwen3_moe": {**_EXPERTS, "head_dim": 16, "norm_topk_prob": True},
    "gemma": {"head_dim": 32},
    "gemma2": {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8},
    "gemma3_text": {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8, "num_hidden_layers": 6},
    "phi3": {},
    "gpt2": {},
    "starcoder2": {},
    "stablelm": {"use_qkv_bias": True},
    "olmo2": {},
    "granite": {
        "embedding_multiplier": 3.0, "logits_scaling": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2,
    },
    "smollm3": {"num_hidden_layers": 4},
    "cohere": {},
    "gpt_neox": {"num_key_value_heads": None},
    "bloom": {},
    "lfm2": {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
    "lfm2_moe": {**_EXPERTS, "layer_types": ["conv", "full_attention", "conv"], "num_hidden_layers": 3},
    "phi": {"partial_rotary_factor": 0.5},
    "cohere2": {"num_hidden_layers": 4, "sliding_window": 8},
    "glm4": {"head_dim": 16, "attention_bias": True},
    "glm": {"head_dim": 16, "attention_bias": True},
    "nemotron": {},
    "exaone": {"model_type": "llama", "rope_parameters": _LLAMA3, "max_position_embeddings": 131072},
    "exaone4": {"sliding_window": None, "layer_types": ["full_attention"] * 2},
    "internlm2": {"model_type": "llama"},
    "minicpm": {
        "model_type": "granite", "embedding_multiplier": 3.0, "logits_scaling": 2.0, "residual_multiplier": 0.5,
        "attention_multiplier": 0.25,
    },
    "olmo": {},
    "olmoe": {"num_key_value_heads": 4, "num_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 64},
    "ernie4_5": {"head_dim": 16},
    "seed_oss": {"head_dim": 16},
    "hunyuan_v1_dense": {"head_dim": 16},
    "arcee": {},
    "granitemoe": {
        "embedding_multiplier": 3.0, "logits_scaling": 2.0, "residual_multiplier": 0.5, "attention_multiplier": 0.2,
        "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 64,
    },
    "falcon": {"num_key_value_heads": None, "ffn_hidden_size": 128},
    "falcon40b": {
        "model_type": "falcon", "num_key_value_heads": None, "num_kv_heads": 2, "new_decoder_architecture": True,
        "ffn_hidden_size": 128,
    },
    "deepseek_v2": {**_LATENT, "q_lora_rank": 16},
    "deepseek_v3": {**_LATENT, "q_lora_rank": 16, "norm_topk_prob": True, "routed_scaling_factor": 1.5},
    "mamba": {},
    "gpt_oss": {
        "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 64, "sliding_window": 8,
    },
}  # fmt: skip
"""Config values besides `SHAPE`, by a name that is the model type unless one is given."""
ALIASES = ("exaone", "internlm2", "minicpm")
"""Architectures of llama.cpp that are another one's model type in transformers."""
PROMPT = [5, 99, 30, 77, 200, 14, 60, 120, 121, 33, 44, 101]


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE over printable characters, so that every token is text of its own."""
    letters = [chr(code) for code in range(33, 127)]
    vocabulary, merges = {letter: number for number, letter in enumerate(letters)}, []
    for pair in ((one, other) for one in letters for other in letters[:3]):
        if len(vocabulary) < 256:
            vocabulary["".join(pair)] = len(vocabulary)
            merges.append(pair)
    return byte_level(vocabulary, merges)


def byte_level(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE with three special tokens after the vocabulary."""
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<bos>", "<stop>", "<pad>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<bos>", eos_token="<stop>", pad_token="<pad>",
        chat_template="{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}{% endfor %}",
    )  # fmt: skip


def make(kind: str, **shape: Any) -> core.LoadedModel:
    """Return a random model whose norms and biases are not trivial; called "tiny". `shape` replaces sizes."""
    torch.manual_seed(1)
    extra = dict(KINDS[kind])
    config = AutoConfig.for_model(extra.pop("model_type", kind), **{**SHAPE, **extra, **shape})
    network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    randomize(network)
    return core.wrap(network, tokenizer(), "tiny")


def randomize(network: torch.nn.Module) -> None:
    """Make norms and biases not trivial, and matrices larger."""
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() == 1 or "norm" in name:
                parameter.add_(torch.randn_like(parameter) * 0.2)
            else:
                parameter.mul_(3)


def save(kind: str, model: core.LoadedModel, path: Path, weights: str) -> Path:
    """Write a model of `KINDS` and return the path."""
    export_model(exported_model(model), path, weights, kind if kind in ALIASES else None)
    return path


@torch.inference_mode()
def logits(model: core.LoadedModel, ids: list[int] = PROMPT) -> torch.Tensor:
    """Return float32 logits [n, V] of a module's own pass."""
    found: torch.Tensor = model.model(torch.tensor([ids])).logits[0].float()
    return found
