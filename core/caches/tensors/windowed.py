"""Layers that keep a window, and caches laid out with or without them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers.cache_utils import (
    Cache,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
    LinearAttentionAndSlidingWindowAttentionLayer,
)

from core.caches.tensors.adapted_layer import CacheLayer, compact_tensor
from core.caches.tensors.compressed import compact_compressed, is_compressed
from core.caches.tensors.preallocated import PreallocatedLayer
from core.models.loaded_model import LoadedModel
from resources.language import tr


class WindowLayer(DynamicSlidingWindowLayer):
    """transformers' windowed layer, made to hold only what it shows: no view over a longer storage."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, sliding_window: int) -> None:
        super().__init__(sliding_window)
        del self._sliding_window_tensor  # the number again, as a tensor: it would count as a state

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Empty keys and values of the given type and device."""
        DynamicLayer.lazy_initialization(self, key_states, value_states)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens [B, H, n, D]; what they attend to comes back, what the window has passed is freed."""
        seen = super().update(key_states, value_states, *args, **kwargs)
        self.keys, self.values = compact_tensor(self.keys), compact_tensor(self.values)
        return seen


class HybridWindowLayer(LinearAttentionAndSlidingWindowAttentionLayer):
    """transformers' layer with a window and a state, which stores no more of the window than it shows."""

    keys: torch.Tensor
    values: torch.Tensor

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens [B, H, n, D] and return what they attend to; the memory of tokens outside the window is freed."""
        seen = super().update(key_states, value_states, *args, **kwargs)
        self.keys, self.values = compact_tensor(self.keys), compact_tensor(self.values)
        return seen


def config_cache(model: LoadedModel) -> Cache:
    """A decoder's cache as the model's configuration lays it out: windows, states, placeholders."""
    return _build_layout(model, WindowLayer)


def without_windows(model: LoadedModel) -> Cache:
    """The same, but windowed attention layers keep everything too (their mask still hides what is out of reach)."""
    return _build_layout(model, lambda window: _full_layer())


def with_cross_attention(model: LoadedModel, own: Cache) -> Cache:
    """`own` for a decoder; for an encoder–decoder both halves: cross-attention sees the whole source in every layer."""
    if not model.is_encoder_decoder:
        return own
    cross = DynamicCache()
    cross.layers = [_full_layer() for _ in own.layers]
    return EncoderDecoderCache(own, cross)


def pair_halves(own: Cache | None, other: Cache | None) -> EncoderDecoderCache:
    """The written half of one encoder–decoder's cache with the read half of another."""
    if not (isinstance(own, EncoderDecoderCache) and isinstance(other, EncoderDecoderCache)):
        raise TypeError(tr("both have to be caches of an encoder–decoder"))
    return EncoderDecoderCache(own.self_attention_cache, other.cross_attention_cache)


def _build_layout(model: LoadedModel, windowed: Callable[[int], DynamicLayer]) -> Cache:
    cache = DynamicCache(config=model.config)
    cache.layers = [
        windowed(layer.sliding_window) if type(layer) is DynamicSlidingWindowLayer else _replacement(layer)
        for layer in cache.layers
    ]
    return cache


def _replacement(layer: CacheLayer) -> CacheLayer:
    """Return a layer that stores the same tokens in less memory or time, or the layer itself."""
    if type(layer) is DynamicLayer:
        return PreallocatedLayer()
    if type(layer) is LinearAttentionAndSlidingWindowAttentionLayer:
        return HybridWindowLayer(layer.sliding_window, layer.number_of_states)
    return compact_compressed(layer) if is_compressed(layer) else layer


def _full_layer() -> DynamicLayer:
    return PreallocatedLayer()
