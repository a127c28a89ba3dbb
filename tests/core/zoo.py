"""Tiny random models of every transformers architecture that generates text and accepts a generic small
configuration.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from transformers import AutoConfig, PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from decodescope import core

VOCABULARY = 61
_SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY, "vocab_size_per_layer_input": VOCABULARY, "hidden_size": 32, "n_embd": 32, "d_model": 32,
    "dim": 32, "embed_dim": 32, "emb_dim": 32, "embedding_size": 32, "d_embed": 32, "word_embed_proj_dim": 32,
    "input_embedding_size": 32, "output_embedding_size": 32, "hidden_size_per_layer_input": 8,
    "intermediate_size": 64, "d_ff": 64, "ffn_dim": 64, "n_inner": 64, "ffn_hidden_size": 64, "dim_ff": 64,
    "shared_expert_intermediate_size": 32, "moe_intermediate_size": 32, "expert_ffn_hidden_size": 32,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "feed_forward_proj_dim": 64, "moe_layer_intermediate_size": 32,
    "num_hidden_layers": 4, "n_layer": 4, "n_layers": 4, "num_layers": 4, "decoder_layers": 4, "encoder_layers": 2,
    "num_decoder_layers": 4, "num_encoder_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4,
    "num_key_value_heads": 2, "num_kv_heads": 2, "head_dim": 8, "d_kv": 8, "dim_head": 8, "attention_head_dim": 8,
    "max_position_embeddings": 256, "n_positions": 256, "max_seq_len": 256, "n_ctx": 256, "max_target_positions": 256,
    "max_source_positions": 256, "max_sequence_length": 256,
    "sliding_window": 8, "attention_window_size": 8, "window_size": 8, "attention_chunk_size": 8,
    "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_num_experts": 4,
    "num_experts_per_token": 2, "n_group": 1, "topk_group": 1, "moe_k": 2, "moe_topk": 2, "n_shared_experts": 1,
    "first_k_dense_replace": 1, "moe_layer_start_index": 1, "num_zero_experts": 0, "zero_expert_num": 0,
    "q_lora_rank": 16, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
    "index_head_dim": 16, "index_n_heads": 16, "index_topk": 8, "linear_head_dim": 8, "linear_num_heads": 4,
    "qk_head_dim": 16,
    "state_size": 4, "mamba_d_state": 4, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_num_heads": 4,
    "mamba_head_dim": 16, "ssm_state_size": 4, "mamba_n_groups": 1, "mamba_d_ssm": 64, "mamba_expand": 2,
    "mamba_dt_rank": 4, "time_step_rank": 4, "n_groups": 1, "chunk_size": 16, "mamba_chunk_size": 16, "lru_width": 32,
    "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "global_head_dim": 16, "rotary_dim": 4, "conv_L_cache": 3, "block_size": 16, "num_kv_shared_layers": 0,
    "laurel_rank": 8, "altup_num_inputs": 2, "adapter_size": 8, "original_max_position_embeddings": 256,
    "num_codebooks": 4, "expert_capacity": 64, "ngram": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 3, "forced_eos_token_id": None, "forced_bos_token_id": None,
}  # fmt: skip
"""Requested values of a configuration, for the fields that it has."""
_IN_THE_WAY = ("head_dim", "num_key_value_heads", "sliding_window", "num_experts_per_tok", "num_hidden_layers")
"""Fields that go together with others in ways of their own."""
_LATENT = {"num_key_value_heads": 4}
"""Latent attention has a key for every query."""
_OWN: dict[str, dict[str, Any]] = {
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "mamba2": {"num_heads": 8, "head_dim": 8, "hidden_size": 32},
    "xlm": {"n_langs": 1, "n_words": VOCABULARY, "causal": True, "emb_dim": 32},
    "xglm": {"attention_heads": 4},
    "fsmt": {"src_vocab_size": VOCABULARY, "tgt_vocab_size": VOCABULARY, "langs": ["a", "b"]},
    "xlnet": {"d_inner": 64},
    "xlstm": {"hidden_size": 128, "embedding_dim": 128, "num_blocks": 4, "num_heads": 4},
    "lfm2": {"layer_types": ["conv", "full_attention", "conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv", "full_attention"], "num_dense_layers": 2},
    "kimi_linear": {
        "layer_types": ["linear_attention", "full_attention"] * 2,
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
    },
    "bailing_hybrid": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "dory": {
        "layer_types": ["sliding_attention", "mlp", "full_attention", "mlp"] * 2, "num_hidden_layers": 8,
        "n_input_layers": 2, "n_recurrent_layers": 4, "n_output_layers": 2,
    },
    "rwkv": {"attention_hidden_size": 32},
    "reformer": {
        "attn_layers": ["local", "local", "local", "local"], "axial_pos_shape": (16, 16),
        "axial_pos_embds_dim": (16, 16), "is_decoder": True, "attention_head_size": 8, "feed_forward_size": 64,
        "local_attn_chunk_length": 16,
    },
    "bigbird_pegasus": {"block_size": 4, "num_random_blocks": 1},
    "led": {"attention_window": 8, "max_encoder_position_embeddings": 256, "max_decoder_position_embeddings": 256},
    "prophetnet": {"num_encoder_layers": 4, "num_buckets": 8, "relative_max_distance": 32},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16},
    "granitemoehybrid": {"layer_types": ["mamba", "attention", "mamba", "attention"]},
    "bamba": {"attn_layer_indices": [1, 3]},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
}  # fmt: skip
_LARGEST = 3_000_000
_BARE = {
    "bert", "bert-generation", "big_bird", "biogpt", "camembert", "data2vec-text", "electra", "ernie", "megatron-bert",
    "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "xlm-roberta", "xlm-roberta-xl", "xmod",
}  # fmt: skip
"""Encoders that write when configured as decoders."""


def names() -> list[str]:
    """Model types of decoders and encoder–decoders with a language-model head."""
    return sorted({*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES})


@torch.random.fork_rng()  # keeps the state of the global random generator
def make(kind: str, seed: int = 0, scale: float = 4.0) -> core.LoadedModel:
    """Create a tiny model of that type. Raises transformers' error if it cannot be created with a small config."""
    seq2seq = kind in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    config, cls = _buildable(kind, MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING if seq2seq else MODEL_FOR_CAUSAL_LM_MAPPING)
    torch.manual_seed(seed)
    network = cls(config).float().eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.dim() > 1 and "position" not in name:  # sinusoids are recomputed when a text outgrows them
                parameter.mul_(scale if not seq2seq else scale / 2)
    network.generation_config.max_length = None
    if seq2seq and network.generation_config.decoder_start_token_id is None:
        network.generation_config.decoder_start_token_id = _SMALL["decoder_start_token_id"]
    return core.wrap(network, name=f"tiny-{kind}")


def _buildable(kind: str, mapping: Any) -> tuple[Any, Any]:
    """A configuration of which something small can be built, and its class; raises what the first attempt raised."""
    trouble: Exception | None = None
    for wanted in _attempts(_wanted(kind)):
        try:
            with warnings.catch_warnings(), torch.device("meta"):
                warnings.simplefilter("ignore")
                config = AutoConfig.for_model(kind, **wanted)
                cls = mapping[type(config)]
                cls = cls[0] if isinstance(cls, tuple) else cls
                if sum(parameter.numel() for parameter in cls(config).parameters()) > _LARGEST:
                    raise ValueError(f"{kind} is not small")
            return config, cls
        except Exception as error:
            trouble = trouble or error
    raise trouble or ValueError(kind)


def _wanted(kind: str) -> dict[str, Any]:
    """Return the requested config values, with those of inner configs."""
    config = AutoConfig.for_model(kind)
    known = _known(config)
    wanted = {name: value for name, value in _SMALL.items() if name in known}
    text = getattr(config, "text_config", None)
    for name, inner in vars(config).items():
        if isinstance(inner, PreTrainedConfig) and inner is not config:
            wanted[name] = {field: value for field, value in _SMALL.items() if field in _known(inner)}
    if text is not None and text is not config:
        wanted["text_config"] = {**wanted.get("text_config", {}), **_OWN.get(kind, {})}
    if "kv_lora_rank" in known and "num_key_value_heads" in known:
        wanted |= _LATENT
    if kind in _BARE:
        wanted["is_decoder"] = True
    wanted |= _OWN.get(kind, {}) if text is None or text is config else {}
    return wanted


def _attempts(wanted: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All of it, or with one field as the architecture has it, or without what is usually in the way."""
    yield wanted
    likely = [name for name in _IN_THE_WAY if name in wanted]
    for name in (*likely, *(name for name in wanted if name not in likely)):
        yield {key: value for key, value in wanted.items() if key != name}
    yield {key: value for key, value in wanted.items() if key not in likely}


def _known(config: Any) -> set[str]:
    return {*config.to_dict(), *getattr(config, "attribute_map", {})}


def prompt(length: int = 12, seed: int = 0) -> list[int]:
    """Token ids that are not special."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, VOCABULARY, (length,), generator=generator).tolist()
