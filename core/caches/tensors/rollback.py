"""Taking tokens back out of a key–value cache of any kind: cut it, or keep chosen rows of its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from core.models.model import LoadedModel


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


def show_text_only(cache: Any, on: bool) -> None:
    """Let layers of fixed size show the tokens they hold, as growing ones do, or all their places again."""
    for layer in getattr(cache, "self_attention_cache", cache).layers:
        if hasattr(layer, "trimmed"):
            layer.trimmed = on


def crop(cache: Any, length: int) -> None:
    """Forget everything behind the first `length` tokens."""
    _settle_transfers(cache)
    for layer in growing_layers(cache):
        _crop_layer(layer, length)


def keep_rows(cache: Any, base: int, rows: Sequence[int]) -> None:
    """Of what stands behind the first `base` tokens keep `rows` (counted from there), in this order."""
    _settle_transfers(cache)
    count, moved = len(rows), list(rows) != list(range(len(rows)))
    for layer in growing_layers(cache):
        if moved and hasattr(layer, "select"):
            layer.select([*range(base), *(base + row for row in rows)])
            continue
        if moved:
            _move_rows(layer, base, rows)
        _crop_layer(layer, base + count)


def _crop_layer(layer: Any, length: int) -> None:
    if hasattr(layer, "truncate"):
        layer.truncate(min(length, int(layer.get_seq_length())))
    elif layer.keys.shape[-2] > length:
        layer.keys = layer.keys[..., :length, :]
        layer.values = layer.values[..., :length, :]


def _move_rows(layer: Any, base: int, rows: Sequence[int]) -> None:
    index = torch.tensor([base + row for row in rows], device=layer.keys.device)
    for tensor in (layer.keys, layer.values):
        tensor[..., base : base + len(rows), :] = tensor.index_select(-2, index)


def _settle_transfers(cache: Any) -> None:
    """Layers on their way between a graphics card and main memory arrive before they are changed."""
    own = getattr(cache, "self_attention_cache", cache)
    if getattr(own, "offloading", False):
        torch.cuda.synchronize()


def compact(cache: Any) -> None:
    """Give back memory that only tokens taken back still occupy."""
    for layer in growing_layers(cache):
        for name in () if hasattr(layer, "truncate") else ("keys", "values"):
            tensor = getattr(layer, name)
            if tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size():
                setattr(layer, name, tensor.clone(memory_format=torch.contiguous_format))
