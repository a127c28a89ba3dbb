"""Changing a filled cache: forgetting its end, keeping chosen tokens, copying it; for every kind of layer."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers.cache_utils import (
    DummyLayer,
    DynamicIndexedLayer,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
    LinearAttentionCacheLayerMixin,
    StaticLayer,
    StaticSlidingWindowLayer,
)

from core.caches.tensors.windowed import compacted
from core.errors import CacheError

_REMEDY = "Choose the dynamic cache for this."
NEVER = 1 << 62
"""A length no text has."""


@torch.inference_mode()
def truncate(cache: Any, length: int) -> None:
    """Keep the first `length` tokens. Raises CacheError for a state, or a window that has moved past them."""
    held = length_of(cache)
    if not 0 <= length <= held:
        raise CacheError(f"The cache holds {held:,} tokens and cannot be cut to {length:,}.", "Ask for fewer.")
    for layer in own_layers(cache):
        _truncate_layer(layer, length)


@torch.inference_mode()
def select(cache: Any, positions: Sequence[int] | torch.Tensor) -> None:
    """Keep the tokens at `positions` (ascending). Raises CacheError as `truncate` does."""
    kept = [int(p) for p in (positions.tolist() if isinstance(positions, torch.Tensor) else positions)]
    for layer in own_layers(cache):
        _select_layer(layer, kept)


@torch.inference_mode()
def copy(cache: Any) -> Any:
    """An independent cache with the same content."""
    if isinstance(cache, EncoderDecoderCache):
        twin = copying.copy(cache)
        twin.self_attention_cache = copy(cache.self_attention_cache)
        twin.cross_attention_cache = copy(cache.cross_attention_cache)
        twin.is_updated = dict(cache.is_updated)
        return twin
    if hasattr(cache, "copied"):
        return cache.copied()
    twin = copying.copy(cache)
    twin.layers = [layer.copied() if hasattr(layer, "copied") else _copy_layer(layer) for layer in cache.layers]
    return twin


def own_layers(cache: Any) -> list[Any]:
    """Layers that grow with the text: an encoder–decoder's cross-attention does not."""
    layers: list[Any] = getattr(cache, "self_attention_cache", cache).layers
    return layers


def length_of(cache: Any) -> int:
    """Tokens held so far, as an int whatever the cache counts with."""
    try:
        return int(cache.get_seq_length())
    except ValueError:
        return 0


def least_length(cache: Any) -> int:
    """How short the text can be cut: 0 where everything is still held, `NEVER` where nothing can be taken back."""
    return max((_least(layer) for layer in own_layers(cache)), default=0)


def tokens_read(cache: Any) -> int:
    """Tokens of the text so far, forgotten ones included; 0 for a recurrent state, which does not count."""
    return max((int(getattr(layer, "seen", 0)) for layer in own_layers(cache)), default=0) or length_of(cache)


def _least(layer: Any) -> int:
    if hasattr(layer, "least"):
        return int(layer.least())
    if isinstance(layer, DummyLayer):
        return 0
    if isinstance(layer, LinearAttentionCacheLayerMixin):
        return NEVER
    if isinstance(layer, StaticSlidingWindowLayer):
        return NEVER if layer.cumulative_length_int > layer.max_cache_len else 0
    if isinstance(layer, DynamicSlidingWindowLayer) and layer.is_initialized:
        gone = layer.cumulative_length - _count(layer)
        return gone + layer.sliding_window - 1 if gone else 0
    return 0


def _count(layer: Any) -> int:
    count: int = layer.keys.shape[-2]
    return count


def _truncate_layer(layer: Any, length: int) -> None:
    if hasattr(layer, "truncate"):
        layer.truncate(length)
    elif isinstance(layer, DummyLayer):
        return
    elif isinstance(layer, LinearAttentionCacheLayerMixin):
        raise CacheError("A recurrent state cannot be taken back.", _REMEDY)
    elif isinstance(layer, StaticLayer):
        _truncate_static(layer, length)
    elif isinstance(layer, DynamicSlidingWindowLayer):
        _truncate_window(layer, length)
    elif layer.is_initialized and length < layer.get_seq_length():
        layer.crop(length - layer.get_seq_length())
        _compact(layer)


def _truncate_static(layer: Any, length: int) -> None:
    """Zero the end and set the length; fixed storages stay where they are."""
    if not layer.is_initialized:
        return
    if isinstance(layer, StaticSlidingWindowLayer):
        if layer.cumulative_length_int > layer.max_cache_len:
            _refuse_window(length)
        layer.cumulative_length_int = length
    layer.keys[:, :, length:].zero_()
    layer.values[:, :, length:].zero_()
    layer.cumulative_length.fill_(length)


def _truncate_window(layer: Any, length: int) -> None:
    """Needs all the tokens that the shorter text's window shows."""
    if not layer.is_initialized:
        return
    stored, passed = layer.keys.shape[-2], layer.cumulative_length
    start = max(length - layer.sliding_window + 1, 0)
    if start < passed - stored:
        _refuse_window(length)
    first = start - (passed - stored)
    _slice(layer, lambda tensor: tensor[:, :, first : first + length - start])
    layer.cumulative_length = length


def _select_layer(layer: Any, kept: list[int]) -> None:
    if hasattr(layer, "select"):
        layer.select(kept)
    elif isinstance(layer, DummyLayer) or not layer.is_initialized:
        return
    elif isinstance(layer, StaticLayer) and not isinstance(layer, StaticSlidingWindowLayer):
        _select_static(layer, kept)
    elif isinstance(layer, DynamicSlidingWindowLayer):
        _select_window(layer, kept)
    elif type(layer) is DynamicLayer:
        index = torch.tensor(kept, dtype=torch.long, device=_device(layer))
        _slice(layer, lambda tensor: tensor.index_select(2, index))
    else:
        raise CacheError(f"A layer of the kind {type(layer).__name__} cannot keep tokens at chosen places.", _REMEDY)


def _select_static(layer: Any, kept: list[int]) -> None:
    index = torch.tensor(kept, dtype=torch.long, device=_device(layer))
    for tensor in (layer.keys, layer.values):
        tensor[:, :, : len(kept)] = tensor.index_select(2, index)
    _truncate_static(layer, len(kept))


def _select_window(layer: Any, kept: list[int]) -> None:
    gone = layer.cumulative_length - layer.keys.shape[-2]
    if kept[:gone] != list(range(gone)):
        _refuse_window(len(kept))
    visible = kept[gone:][-(layer.sliding_window - 1) :]
    index = torch.tensor([position - gone for position in visible], dtype=torch.long, device=_device(layer))
    _slice(layer, lambda tensor: tensor.index_select(2, index))
    layer.cumulative_length = len(kept)


def _device(layer: Any) -> torch.device:
    device: torch.device = layer.keys.device
    return device


def _slice(layer: Any, cut: Callable[[torch.Tensor], torch.Tensor]) -> None:
    layer.keys, layer.values = compacted(cut(layer.keys)), compacted(cut(layer.values))


def _compact(layer: Any) -> None:
    _slice(layer, lambda tensor: tensor)
    if isinstance(layer, DynamicIndexedLayer) and layer.indexer_keys is not None:
        layer.indexer_keys = compacted(layer.indexer_keys)


def _copy_layer(layer: Any) -> Any:
    twin = copying.copy(layer)
    for name, value in vars(layer).items():
        setattr(twin, name, _copy_value(value))
    return twin


def _copy_value(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return {key: _copy_value(item) for key, item in value.items()} if isinstance(value, dict) else value


def _refuse_window(length: int) -> None:
    raise CacheError(f"The window has moved past what a text of {length:,} tokens needs to see.", _REMEDY)
