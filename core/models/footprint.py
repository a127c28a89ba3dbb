"""What a text takes in memory, by config.json alone: before anything is loaded, and without torch."""

from __future__ import annotations

from collections.abc import Mapping

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model")


def cache_bytes(config: Mapping[str, object], tokens: int, element_bytes: int = 4) -> int:
    """Bytes of keys and values of `tokens` tokens: 2 · layers · kv_heads · tokens · head_dim · bytes.

    An upper bound where layers keep a window only; 0 for models without attention, or whose config does not tell.
    """
    inner = config.get("text_config")
    text = inner if isinstance(inner, dict) else config
    layers, heads, width = (_config_size(text, names) for names in (_LAYERS, _HEADS, _WIDTH))
    if not layers or not heads or not width:
        return 0
    kv_heads = _config_size(text, ("num_key_value_heads",)) or heads
    head_dim = _config_size(text, ("head_dim", "d_kv")) or width // heads
    layers = _config_size(text, ("num_decoder_layers",)) or layers
    return 2 * layers * kv_heads * tokens * head_dim * element_bytes


def _config_size(config: Mapping[str, object], names: tuple[str, ...]) -> int:
    """The first of these that is a size, or the greatest of a list of them; 0 when none is."""
    sizes = (_size(config.get(name)) for name in names)
    return next((size for size in sizes if size > 0), 0)


def _size(value: object) -> int:
    if isinstance(value, list):
        return max((item for item in value if type(item) is int), default=0)
    return value if type(value) is int else 0
