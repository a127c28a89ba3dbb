"""To and from the tuples of tuples that transformers used before it had cache classes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache

from core.caches.tensors.cache_editing import adapted_layers, cached_length, cross_layers, min_length
from core.caches.tensors.layer_adapters import adapt_layer
from core.errors import CacheError
from resources.language import tr

Legacy = tuple[tuple[torch.Tensor, ...], ...]
"""A layer each: (keys, values), or (keys, values, cross keys, cross values); every tensor [B, H, T, D]."""


def to_legacy(cache: Cache) -> Legacy:
    """Keys and values of every layer, cut to the tokens held. Raises CacheError for caches that keep them otherwise:
    states, quantized blocks, windows that have moved, sinks."""
    length = cached_length(cache)
    if min_length(cache) > 0 or not all(layer.keeps_original_keys for layer in adapted_layers(cache)):
        raise CacheError(
            tr("This cache does not hold the keys and values of every token."), tr("Use the dynamic cache for this.")
        )
    states = (layer.states() for layer in adapted_layers(cache))
    own = [(keys[:, :, :length], values[:, :, :length]) for keys, values in states]
    if not isinstance(cache, EncoderDecoderCache):
        return tuple(own)
    cross = [adapt_layer(layer).states() for layer in cross_layers(cache)]
    return tuple((*mine, *theirs) for mine, theirs in zip(own, cross, strict=True))


def from_legacy(layers: Sequence[Sequence[torch.Tensor]]) -> Cache:
    """A DynamicCache of pairs, an EncoderDecoderCache of fours; the tensors themselves, not copies.

    Raises CacheError for anything else.
    """
    if not layers or any(len(layer) not in (2, 4) for layer in layers) or len({len(layer) for layer in layers}) > 1:
        raise CacheError(
            tr("This is no tuple of (keys, values) for every layer."), tr("Give a pair, or a four, for each layer.")
        )
    own = _dynamic([layer[:2] for layer in layers])
    return own if len(layers[0]) == 2 else EncoderDecoderCache(own, _dynamic([layer[2:] for layer in layers]))


def _dynamic(pairs: Sequence[Sequence[torch.Tensor]]) -> DynamicCache:
    cache = DynamicCache()
    for number, (keys, values) in enumerate(pairs):
        cache.update(keys, values, number)
    return cache
