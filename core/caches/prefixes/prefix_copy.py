"""Filling a fresh cache with the beginning of another one."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, StaticLayer, StaticSlidingWindowLayer

from core.caches.tensors.cache_editing import copy, self_attention_half, tokens_read, truncate
from core.caches.tensors.disk import DiskLayer
from core.caches.tensors.layer_adapters import adapt_layer
from core.caches.tensors.preallocated import is_plain_dynamic_layer


@torch.inference_mode()
def copy_prefix(cache: Cache, length: int, make_empty: Callable[[], Cache | None]) -> Cache:
    """An independent cache with the first `length` tokens of `cache`; `make_empty` makes an empty one.

    Sizes fixed for another run are not taken over: those caches are filled anew. Raises CacheError as `truncate`.
    """
    if any(isinstance(layer, (StaticLayer, DiskLayer)) for layer in self_attention_half(cache).layers):
        empty = make_empty()
        assert empty is not None
        for number, (old, new) in enumerate(
            zip(self_attention_half(cache).layers, self_attention_half(empty).layers, strict=True)
        ):
            if isinstance(old, StaticSlidingWindowLayer) and old.cumulative_length_int > old.max_cache_len:
                assert isinstance(new, StaticSlidingWindowLayer)
                _copy_full_window(old, new)
            else:
                keys, values = adapt_layer(old).states()
                empty.update(keys[:, :, :length], values[:, :, :length], number)
        return empty
    if all(map(is_plain_dynamic_layer, self_attention_half(cache).layers)) and isinstance(cache, DynamicCache):
        return _share_prefix(cache, length)
    twin = copy(cache)
    if length < tokens_read(twin):
        truncate(twin, length)
    return twin


def _share_prefix(cache: Cache, length: int) -> Cache:
    """Views instead of copies: a plain layer joins old and new tokens into new storages before anything is changed in
    place, and a run that starts from a prefix reads at least one token first."""
    twin = copying.copy(cache)
    twin.layers = []
    for layer in cache.layers:
        view = copying.copy(layer)
        if isinstance(view, DynamicLayer) and view.is_initialized:
            keys, values = adapt_layer(view).states()
            view.keys, view.values = keys[:, :, :length], values[:, :, :length]
        twin.layers.append(view)
    return twin


def _copy_full_window(old: StaticSlidingWindowLayer, new: StaticSlidingWindowLayer) -> None:
    """A window that has moved is as wide in every run: the text is longer than it."""
    states = adapt_layer(old).states()
    new.lazy_initialization(*states)
    for empty, full in zip(adapt_layer(new).states(), states, strict=True):
        empty.copy_(full)
    new.cumulative_length.copy_(old.cumulative_length)
    new.cumulative_length_int = old.cumulative_length_int
