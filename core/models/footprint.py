"""What a text takes in memory, by config.json alone: before anything is loaded, and without torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model")


def cache_bytes(config: Mapping[str, Any], tokens: int, element_bytes: int = 4) -> int:
    """Bytes of keys and values of `tokens` tokens: 2 · layers · kv_heads · tokens · head_dim · bytes.

    An upper bound where layers keep a window only; 0 for models without attention, or whose config does not tell.
    """
    text = config.get("text_config", config)
    layers, heads, width = (_first(text, names) for names in (_LAYERS, _HEADS, _WIDTH))
    if not layers or not heads or not width:
        return 0
    kv_heads = text.get("num_key_value_heads") or heads
    head_dim = text.get("head_dim") or text.get("d_kv") or width // heads
    layers = text.get("num_decoder_layers") or layers
    return int(2 * layers * kv_heads * tokens * head_dim * element_bytes)


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((int(config[name]) for name in names if config.get(name)), 0)
