"""Counting bytes: what a cache holds now, and what it will hold at a given length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from core.caches.base import Measurement
from core.model import LoadedModel


def measure_storages(cache: Any) -> Measurement:
    """Sum of the tensor storages a transformers cache holds, every storage once, by layer, place and part."""
    if cache is None:
        return Measurement(0, 0)
    seen: set[int] = set()
    parts: dict[tuple[str, str], int] = {}
    layers: list[int] = []
    for kind, layer in _layers(cache):
        total = 0
        for name, tensor in _tensors(layer):
            storage = tensor.untyped_storage()
            if storage.data_ptr() in seen or storage.nbytes() == 0:
                continue
            seen.add(storage.data_ptr())
            place = "host" if tensor.device.type == "cpu" else "device"
            key = (place, kind or name)
            parts[key] = parts.get(key, 0) + storage.nbytes()
            total += storage.nbytes()
        layers.append(total)
    listed = tuple((place, part, size) for (place, part), size in parts.items())
    return Measurement(sum(layers), _length(cache), listed, tuple(layers))


def _layers(cache: Any) -> Iterator[tuple[str, Any]]:
    """(part name or "", layer): an encoder–decoder's halves are parts of their own."""
    if hasattr(cache, "self_attention_cache"):
        yield from (("self", layer) for layer in cache.self_attention_cache.layers)
        yield from (("cross", layer) for layer in cache.cross_attention_cache.layers)
    else:
        yield from (("", layer) for layer in getattr(cache, "layers", ()))


def _tensors(layer: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """(part, tensor) of everything a cache layer keeps."""
    for name, value in vars(layer).items():
        part = name if name in ("keys", "values") else "state"
        if isinstance(value, torch.Tensor):
            yield part, value
        elif isinstance(value, dict):
            yield from (("state", item) for item in value.values() if isinstance(item, torch.Tensor))


def _length(cache: Any) -> int:
    try:
        return int(cache.get_seq_length())
    except (ValueError, IndexError, AttributeError):  # a purely recurrent state has no length
        return 0


def predict_attention(model: LoadedModel, length: int, batch: int) -> int:
    """Bytes of keys and values at `length` tokens; windowed layers stop growing at their window."""
    size = torch.empty((), dtype=model.dtype).element_size()
    return sum(2 * batch * heads * min(length, held) * width * size for heads, width, held in _shapes(model, length))


def _shapes(model: LoadedModel, length: int) -> Iterator[tuple[int, int, int]]:
    """(key–value heads, head width, most tokens held) of every attention layer."""
    config = model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or getattr(config, "d_kv", None)
    width = width or config.hidden_size // config.num_attention_heads
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"] * model.layers
    for kind in kinds:
        yield int(heads), int(width), int(window) - 1 if window and kind == "sliding_attention" else length
