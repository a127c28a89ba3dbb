"""Decoder families on which the native decode step is tried: each tiny, and as deep as a published model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import transformers as t

TINY: dict[str, Any] = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
DEEP: dict[str, Any] = {
    "vocab_size": 16_000, "hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 24,
    "num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 2048,
}  # fmt: skip
_YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10_000.0}
_NTK = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10_000.0}


def _longrope(half: int, original: int) -> dict[str, Any]:
    return {
        "rope_type": "longrope", "short_factor": [1.0 + 0.02 * i for i in range(half)],
        "long_factor": [2.0 + 0.5 * i for i in range(half)], "rope_theta": 10_000.0,
        "original_max_position_embeddings": original,
    }  # fmt: skip


@dataclass(frozen=True)
class NativeShape:
    """A family of decoders and its configurations. `tiny` and `deep` are added to TINY and DEEP; None removes a
    field. `like`: the published model whose depth and proportions `deep` has.
    """

    title: str
    config: str
    network: str
    like: str
    both: dict[str, Any] = field(default_factory=dict)
    tiny: dict[str, Any] = field(default_factory=dict)
    deep: dict[str, Any] = field(default_factory=dict)
    attention: str | None = None

    def make(self, is_deep: bool = False) -> Any:
        """Return a random network; a tiny one has weights far from zero, norms and biases included."""
        settings = (DEEP if is_deep else TINY) | self.both | (self.deep if is_deep else self.tiny)
        config = getattr(t, self.config)(**{name: value for name, value in settings.items() if value is not None})
        if self.attention:
            config._attn_implementation = self.attention
        torch.manual_seed(0)
        network = getattr(t, self.network)(config).eval()
        if not is_deep:
            with torch.no_grad():
                for weight in network.parameters():
                    weight.mul_(4).add_(0.1 * torch.randn_like(weight))
        return network


_ONE_HEAD_EACH = {"num_key_value_heads": None}
_MOE_TINY = {"num_experts_per_tok": 2, "moe_intermediate_size": 32, "num_experts": 6}
SHAPES: dict[str, NativeShape] = {
    "gemma2": NativeShape(
        "Gemma 2", "Gemma2Config", "Gemma2ForCausalLM", "Gemma-2-2B",
        tiny={"head_dim": 8, "sliding_window": 8, "attn_logit_softcapping": 4.0, "final_logit_softcapping": 3.0},
        deep={"num_hidden_layers": 26, "head_dim": 64, "sliding_window": 1024}, attention="eager",
    ),
    "gemma3": NativeShape(
        "Gemma 3", "Gemma3TextConfig", "Gemma3ForCausalLM", "Gemma-3-270M",
        tiny={"head_dim": 8, "sliding_window": 8, "sliding_window_pattern": 2},
        deep={"num_hidden_layers": 18, "hidden_size": 640, "intermediate_size": 2048, "num_attention_heads": 4,
              "num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512},
    ),
    "gpt2": NativeShape(
        "GPT-2", "GPT2Config", "GPT2LMHeadModel", "GPT-2",
        {"intermediate_size": None, "num_key_value_heads": None},
        deep={"vocab_size": 50_257, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
              "max_position_embeddings": 1024},
    ),
    "gpt_neox": NativeShape(
        "GPT-NeoX, Pythia", "GPTNeoXConfig", "GPTNeoXForCausalLM", "Pythia-160M", _ONE_HEAD_EACH,
        deep={"vocab_size": 50_304, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
              "num_attention_heads": 12},
    ),
    "phi3": NativeShape(
        "Phi-3, Phi-4 with longrope", "Phi3Config", "Phi3ForCausalLM", "Phi-3-mini-128k",
        tiny={"rope_parameters": _longrope(4, 20), "original_max_position_embeddings": 20},
        deep={"num_hidden_layers": 32, "rope_parameters": _longrope(32, 1024),
              "original_max_position_embeddings": 1024, "pad_token_id": 0},
    ),
    "qwen2_yarn": NativeShape(
        "Qwen2 with YaRN", "Qwen2Config", "Qwen2ForCausalLM", "Qwen2.5-0.5B",
        tiny={"rope_parameters": {**_YARN, "original_max_position_embeddings": 64}},
        deep={"rope_parameters": {**_YARN, "original_max_position_embeddings": 512}},
    ),
    "llama_ntk": NativeShape(
        "Llama with dynamic NTK", "LlamaConfig", "LlamaForCausalLM", "Llama-2 with scaled RoPE",
        tiny={"rope_parameters": _NTK, "max_position_embeddings": 20}, deep={"rope_parameters": _NTK},
    ),
    "olmo2": NativeShape("OLMo 2", "Olmo2Config", "Olmo2ForCausalLM", "OLMo-2-1B", deep={"num_hidden_layers": 16}),
    "smollm3": NativeShape(
        "SmolLM3", "SmolLM3Config", "SmolLM3ForCausalLM", "SmolLM3-3B",
        deep={"num_hidden_layers": 36, "pad_token_id": 0},
    ),
    "granite": NativeShape(
        "Granite", "GraniteConfig", "GraniteForCausalLM", "Granite-3.1-2B",
        {"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0},
        {"attention_multiplier": 0.3}, {"num_hidden_layers": 40, "attention_multiplier": 0.015625},
    ),
    "qwen3_moe": NativeShape(
        "Qwen3-MoE", "Qwen3MoeConfig", "Qwen3MoeForCausalLM", "Qwen3-30B-A3B", tiny={"head_dim": 8, **_MOE_TINY},
        deep={"head_dim": 64, "num_experts": 32, "num_experts_per_tok": 8, "moe_intermediate_size": 128,
              "norm_topk_prob": True},
    ),
    "mixtral": NativeShape(
        "Mixtral", "MixtralConfig", "MixtralForCausalLM", "Mixtral-8x7B", {"sliding_window": None},
        {"num_local_experts": 4, "num_experts_per_tok": 2},
        {"num_hidden_layers": 16, "num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 768},
    ),
    "cohere": NativeShape(
        "Cohere", "CohereConfig", "CohereForCausalLM", "Aya-23-8B", tiny={"logit_scale": 0.25},
        deep={"num_hidden_layers": 32, "logit_scale": 0.0625},
    ),
    "phi": NativeShape(
        "Phi-1.5, Phi-2", "PhiConfig", "PhiForCausalLM", "Phi-1.5", _ONE_HEAD_EACH,
        deep={"intermediate_size": 1536, "partial_rotary_factor": 0.5},
    ),
    "opt": NativeShape(
        "OPT", "OPTConfig", "OPTForCausalLM", "OPT-125M", {"intermediate_size": None, "num_key_value_heads": None},
        {"ffn_dim": 64, "word_embed_proj_dim": 32},
        {"vocab_size": 50_272, "hidden_size": 768, "ffn_dim": 3072, "num_hidden_layers": 12,
         "num_attention_heads": 12, "word_embed_proj_dim": 768},
    ),
    "opt_350m": NativeShape(
        "OPT-350M", "OPTConfig", "OPTForCausalLM", "OPT-350M",
        {"intermediate_size": None, "num_key_value_heads": None, "do_layer_norm_before": False},
        {"ffn_dim": 64, "word_embed_proj_dim": 16}, {"ffn_dim": 1536, "word_embed_proj_dim": 192},
    ),
    "gptj": NativeShape(
        "GPT-J", "GPTJConfig", "GPTJForCausalLM", "GPT-J-6B", {"intermediate_size": None, "num_key_value_heads": None},
        {"rotary_dim": 4}, {"num_hidden_layers": 28, "rotary_dim": 32},
    ),
    "gpt_neo": NativeShape(
        "GPT-Neo", "GPTNeoConfig", "GPTNeoForCausalLM", "GPT-Neo-125M",
        {"intermediate_size": None, "num_key_value_heads": None, "num_attention_heads": None,
         "num_hidden_layers": None},
        {"num_layers": 4, "num_heads": 4, "attention_types": [[["global", "local"], 2]], "window_size": 8},
        {"vocab_size": 50_257, "hidden_size": 768, "num_layers": 12, "num_heads": 12,
         "attention_types": [[["global", "local"], 6]], "window_size": 256},
    ),
    "bloom": NativeShape(
        "BLOOM", "BloomConfig", "BloomForCausalLM", "BLOOM-560M",
        {"intermediate_size": None, "num_key_value_heads": None, "max_position_embeddings": None,
         "num_hidden_layers": None, "num_attention_heads": None},
        {"n_layer": 4, "n_head": 4}, {"n_layer": 24, "n_head": 6},
    ),
}  # fmt: skip
