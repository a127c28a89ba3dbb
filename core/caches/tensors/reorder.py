"""The cache follows the beams: only the rows that changed are moved, inside their storage where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer, EncoderDecoderCache

_PLAIN = (DynamicLayer, DynamicSlidingWindowLayer)


def reorder(cache: Any, rows: Sequence[int], before: int) -> None:
    """Row i becomes what row `rows[i]` was, of `before` rows; a no-op when nothing changes."""
    if list(rows) == list(range(before)):
        return
    if isinstance(cache, EncoderDecoderCache):
        reorder(cache.self_attention_cache, rows, before)
        if len(rows) != before:  # all beams read the same source: its rows are alike
            cross: Any = cache.cross_attention_cache
            cross.reorder_cache(_tensor([0] * len(rows)))
        return
    moved = [place for place, row in enumerate(rows) if row != place]
    whole, places = _tensor(rows), _tensor(moved)
    sources = _tensor([rows[place] for place in moved])
    for layer in cache.layers:
        if type(layer) in _PLAIN and len(rows) == before and layer.get_seq_length():
            _move(layer.keys, places, sources)
            _move(layer.values, places, sources)
        else:
            layer.reorder_cache(whole)


def _move(tensor: torch.Tensor, places: torch.Tensor, sources: torch.Tensor) -> None:
    tensor.index_copy_(0, places.to(tensor.device), tensor.index_select(0, sources.to(tensor.device)))


def _tensor(rows: Sequence[int]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.long)
