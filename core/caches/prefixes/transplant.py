"""Filling a fresh cache with the beginning of another one."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, StaticLayer, StaticSlidingWindowLayer

from core.caches.tensors.disk import DiskLayer
from core.caches.tensors.editing import copy, own_half, tokens_read, truncate
from core.caches.tensors.faces import face


@torch.inference_mode()
def beginning(cache: Any, length: int, fresh: Callable[[], Any]) -> Any:
    """An independent cache with the first `length` tokens of `cache`; `fresh` makes an empty one.

    Sizes fixed for another run are not taken over: those caches are filled anew. Raises CacheError as `truncate`.
    """
    if any(isinstance(layer, (StaticLayer, DiskLayer)) for layer in own_half(cache).layers):
        empty = fresh()
        for number, (old, new) in enumerate(zip(own_half(cache).layers, own_half(empty).layers, strict=True)):
            if isinstance(old, StaticSlidingWindowLayer) and old.cumulative_length_int > old.max_cache_len:
                _copy_full_window(old, new)
            else:
                keys, values = face(old).states()
                empty.update(keys[:, :, :length], values[:, :, :length], number)
        return empty
    if all(type(layer) is DynamicLayer for layer in own_half(cache).layers) and isinstance(cache, DynamicCache):
        return _sharing(cache, length)
    twin = copy(cache)
    if length < tokens_read(twin):
        truncate(twin, length)
    return twin


def _sharing(cache: Any, length: int) -> Any:
    """Views instead of copies: a plain layer joins old and new tokens into new storages before anything is changed in
    place, and a run that starts from a prefix reads at least one token first."""
    twin = copying.copy(cache)
    twin.layers = []
    for layer in cache.layers:
        view: Any = copying.copy(layer)
        if layer.is_initialized:
            view.keys, view.values = layer.keys[:, :, :length], layer.values[:, :, :length]
        twin.layers.append(view)
    return twin


def _copy_full_window(old: Any, new: Any) -> None:
    """A window that has moved is as wide in every run: the text is longer than it."""
    new.lazy_initialization(old.keys, old.values)
    new.keys.copy_(old.keys)
    new.values.copy_(old.values)
    new.cumulative_length.copy_(old.cumulative_length)
    new.cumulative_length_int = old.cumulative_length_int
