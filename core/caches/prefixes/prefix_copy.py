"""Filling a fresh cache with the beginning of another one."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, StaticLayer, StaticSlidingWindowLayer

from core.caches.tensors.cache_editing import copy, own_half, tokens_read, truncate
from core.caches.tensors.disk import DiskLayer
from core.caches.tensors.layer_adapters import face
from core.caches.tensors.preallocated import grows_plainly


@torch.inference_mode()
def beginning(cache: Cache, length: int, fresh: Callable[[], Cache | None]) -> Cache:
    """An independent cache with the first `length` tokens of `cache`; `fresh` makes an empty one.

    Sizes fixed for another run are not taken over: those caches are filled anew. Raises CacheError as `truncate`.
    """
    if any(isinstance(layer, (StaticLayer, DiskLayer)) for layer in own_half(cache).layers):
        empty = fresh()
        assert empty is not None
        for number, (old, new) in enumerate(zip(own_half(cache).layers, own_half(empty).layers, strict=True)):
            if isinstance(old, StaticSlidingWindowLayer) and old.cumulative_length_int > old.max_cache_len:
                assert isinstance(new, StaticSlidingWindowLayer)
                _copy_full_window(old, new)
            else:
                keys, values = face(old).states()
                empty.update(keys[:, :, :length], values[:, :, :length], number)
        return empty
    if all(map(grows_plainly, own_half(cache).layers)) and isinstance(cache, DynamicCache):
        return _sharing(cache, length)
    twin = copy(cache)
    if length < tokens_read(twin):
        truncate(twin, length)
    return twin


def _sharing(cache: Cache, length: int) -> Cache:
    """Views instead of copies: a plain layer joins old and new tokens into new storages before anything is changed in
    place, and a run that starts from a prefix reads at least one token first."""
    twin = copying.copy(cache)
    twin.layers = []
    for layer in cache.layers:
        view = copying.copy(layer)
        if isinstance(view, DynamicLayer) and view.is_initialized:
            keys, values = face(view).states()
            view.keys, view.values = keys[:, :, :length], values[:, :, :length]
        twin.layers.append(view)
    return twin


def _copy_full_window(old: StaticSlidingWindowLayer, new: StaticSlidingWindowLayer) -> None:
    """A window that has moved is as wide in every run: the text is longer than it."""
    states = face(old).states()
    new.lazy_initialization(*states)
    for empty, full in zip(face(new).states(), states, strict=True):
        empty.copy_(full)
    new.cumulative_length.copy_(old.cumulative_length)
    new.cumulative_length_int = old.cumulative_length_int
