"""Taking tokens back out of a key–value cache: cut it, or keep chosen rows of its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from core.model import LoadedModel


def full_width_cache(model: LoadedModel) -> Any:
    """A cache that keeps every token in every layer, windowed ones too, so that any token can be taken back."""
    from transformers import DynamicCache, EncoderDecoderCache

    if model.is_encoder_decoder:
        return EncoderDecoderCache(DynamicCache(), DynamicCache())
    return DynamicCache()


def growing_layers(cache: Any) -> list[Any]:
    """Layers that grow with the text: of an encoder–decoder the self-attention half."""
    own = getattr(cache, "self_attention_cache", cache)
    return [layer for layer in own.layers if layer.is_initialized]


def crop(cache: Any, length: int) -> None:
    """Forget everything behind the first `length` tokens."""
    for layer in growing_layers(cache):
        if hasattr(layer, "truncate"):
            layer.truncate(min(length, layer.get_seq_length()))
        elif layer.keys.shape[-2] > length:
            layer.keys = layer.keys[..., :length, :]
            layer.values = layer.values[..., :length, :]


def keep_rows(cache: Any, base: int, rows: Sequence[int]) -> None:
    """Of what stands behind the first `base` tokens keep `rows` (counted from there), in this order."""
    count = len(rows)
    if list(rows) != list(range(count)):
        layers = growing_layers(cache)
        index = torch.tensor([base + row for row in rows], device=layers[0].keys.device)
        for layer in layers:
            if hasattr(layer, "select"):
                layer.select([*range(base), *(base + row for row in rows)])
                continue
            layer.keys[..., base : base + count, :] = layer.keys.index_select(-2, index)
            layer.values[..., base : base + count, :] = layer.values.index_select(-2, index)
    crop(cache, base + count)


def compact(cache: Any) -> None:
    """Give back memory that only tokens taken back still occupy."""
    for layer in growing_layers(cache):
        for name in () if hasattr(layer, "truncate") else ("keys", "values"):
            tensor = getattr(layer, name)
            if tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size():
                setattr(layer, name, tensor.clone(memory_format=torch.contiguous_format))
