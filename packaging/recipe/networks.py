"""A network of each bundled model's shape, with fresh weights."""

from __future__ import annotations

from typing import Any

import bpe
from shapes import BOS, EOS, PAD, ModelRecipe


def _common(shape: ModelRecipe) -> dict[str, Any]:
    return {
        "vocab_size": bpe.VOCABULARY,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "tie_word_embeddings": True,
    }


def _attention(shape: ModelRecipe) -> dict[str, Any]:
    return {
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "max_position_embeddings": bpe.CONTEXT,
        "rms_norm_eps": 1e-5,
        **shape.extra,
    }


def _t5(shape: ModelRecipe) -> dict[str, Any]:
    common = {**_common(shape), "decoder_start_token_id": PAD}
    common.pop("bos_token_id")
    return common | {
        "d_model": shape.width,
        "d_kv": shape.width // shape.heads,
        "d_ff": shape.inner,
        "num_layers": shape.layers,
        "num_decoder_layers": shape.extra["decoder_layers"],
        "num_heads": shape.heads,
        "dropout_rate": 0.0,
        "feed_forward_proj": "relu",
        "n_positions": bpe.CONTEXT,
    }


def new_model(shape: ModelRecipe) -> Any:
    """A model of this shape with fresh weights, drawn from the shape's seed."""
    import torch
    import transformers as hf

    torch.manual_seed(shape.seed)
    if shape.family == "llama":
        return hf.LlamaForCausalLM(hf.LlamaConfig(**_common(shape), **_attention(shape)))
    if shape.family == "mistral":
        return hf.MistralForCausalLM(hf.MistralConfig(**_common(shape), **_attention(shape)))
    if shape.family == "mamba":
        sizes = {
            "hidden_size": shape.width,
            "num_hidden_layers": shape.layers,
            "intermediate_size": shape.inner,
            **shape.extra,
        }
        return hf.MambaForCausalLM(hf.MambaConfig(**_common(shape), **sizes))
    if shape.family == "whisper":
        from listener.model import new_listener

        return new_listener(shape)
    if shape.family == "git":
        from describer.model import new_describer

        return new_describer(shape)
    return hf.T5ForConditionalGeneration(hf.T5Config(**_t5(shape)))
