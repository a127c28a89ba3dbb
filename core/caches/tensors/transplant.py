"""Filling a fresh cache with the beginning of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers.cache_utils import StaticLayer, StaticSlidingWindowLayer

from core.caches.tensors.disk import DiskLayer
from core.caches.tensors.editing import copy, own_layers, tokens_read, truncate


@torch.inference_mode()
def beginning(cache: Any, length: int, fresh: Callable[[], Any]) -> Any:
    """An independent cache with the first `length` tokens of `cache`; `fresh` makes an empty one.

    Sizes fixed for another run are not taken over: those caches are filled anew. Raises CacheError as `truncate`.
    """
    if any(isinstance(layer, (StaticLayer, DiskLayer)) for layer in own_layers(cache)):
        empty = fresh()
        for number, (old, new) in enumerate(zip(own_layers(cache), own_layers(empty), strict=True)):
            if isinstance(old, StaticSlidingWindowLayer) and old.cumulative_length_int > old.max_cache_len:
                _copy_full_window(old, new)
            else:
                empty.update(old.keys[:, :, :length], old.values[:, :, :length], number)
        return empty
    twin = copy(cache)
    if length < tokens_read(twin):
        truncate(twin, length)
    return twin


def _copy_full_window(old: Any, new: Any) -> None:
    """A window that has moved is as wide in every run: the text is longer than it."""
    new.lazy_initialization(old.keys, old.values)
    new.keys.copy_(old.keys)
    new.values.copy_(old.values)
    new.cumulative_length.copy_(old.cumulative_length)
    new.cumulative_length_int = old.cumulative_length_int
