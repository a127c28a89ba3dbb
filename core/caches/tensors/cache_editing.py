"""Changing a filled cache: forgetting its end, keeping chosen tokens, moving rows, copying; by its layers' faces."""

from __future__ import annotations

import copy as copying
from collections.abc import Iterator, Sequence

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache

from core.caches.tensors.adapted_layer import AdaptedLayer, CacheLayer, RowMove
from core.caches.tensors.disk import DiskCache
from core.caches.tensors.layer_adapters import adapt_layer
from core.errors import CacheError
from resources.language import tr


@torch.inference_mode()
def truncate(cache: Cache, length: int) -> None:
    """Keep the first `length` tokens and give the others' memory back. Raises CacheError for a state, or a window that
    has moved past them."""
    held = cached_length(cache)
    if not 0 <= length <= held:
        raise CacheError(
            tr("The cache holds {held:,} tokens and cannot be cut to {length:,}.").format(held=held, length=length),
            tr("Ask for fewer."),
        )
    crop(cache, length)
    compact(cache)


@torch.inference_mode()
def select(cache: Cache, positions: Sequence[int] | torch.Tensor) -> None:
    """Keep the tokens at `positions` (ascending). Raises CacheError as `truncate` does."""
    kept = [int(p) for p in (positions.tolist() if isinstance(positions, torch.Tensor) else positions)]
    base = next((place for place, old in enumerate(kept) if place != old), len(kept))
    for layer in adapted_layers(cache):
        layer.keep_rows(base, [place - base for place in kept[base:]])
        layer.compact()


def crop(cache: Cache, length: int) -> None:
    """Forget everything behind the first `length` tokens; a storage stays as large as it is until `compact`."""
    _wait_for_transfers(cache)
    total = tokens_read(cache)
    for layer in adapted_layers(cache):
        layer.truncate(min(length, total), total)


def keep_rows(cache: Cache, base: int, rows: Sequence[int]) -> None:
    """Of what stands behind the first `base` tokens keep `rows` (counted from there), in this order."""
    if list(rows) == list(range(len(rows))):
        crop(cache, base + len(rows))
        return
    _wait_for_transfers(cache)
    for layer in adapted_layers(cache):
        layer.keep_rows(base, rows)


def compact(cache: Cache) -> None:
    """Give back memory that only tokens taken back still occupy."""
    for layer in adapted_layers(cache):
        layer.compact()


def reorder(cache: Cache, rows: Sequence[int], before: int) -> None:
    """Row i becomes what row `rows[i]` was, of `before` rows; a no-op when nothing changes."""
    move = RowMove(tuple(rows), before)
    if move.rows == tuple(range(before)):
        return
    for layer in adapted_layers(cache):
        layer.reorder(move)
    if len(rows) != before:
        alike = RowMove((0,) * len(rows), before)  # all beams read the same source: its rows are alike
        for other in cross_layers(cache):
            adapt_layer(other).reorder(alike)


@torch.inference_mode()
def copy(cache: Cache) -> Cache:
    """An independent cache with the same content."""
    if isinstance(cache, EncoderDecoderCache):
        pair = EncoderDecoderCache(copy(cache.self_attention_cache), copy(cache.cross_attention_cache))
        pair.is_updated = dict(cache.is_updated)
        return pair
    if isinstance(cache, DiskCache):
        return cache.clone()
    twin: Cache = copying.copy(cache)
    twin.layers = [adapt_layer(layer).clone() for layer in cache.layers]
    return twin


def release_resources(cache: Cache | None) -> None:
    """Let a cache that is kept for later hold nothing but its content: no thread, no copies on the way."""
    if isinstance(cache, EncoderDecoderCache):
        release_resources(cache.self_attention_cache)
        release_resources(cache.cross_attention_cache)
    elif isinstance(cache, DiskCache):
        cache.release_resources()


def record_past(cache: Cache, on: bool) -> None:
    """Let layers hold what a cut may need again, or no longer."""
    for layer in adapted_layers(cache):
        layer.record_past(on)


def show_text_only(cache: Cache | None, on: bool) -> None:
    """Let layers of fixed size show the tokens they hold, as growing ones do, or all their places again."""
    for layer in adapted_layers(cache):
        layer.show_text_only(on)


def self_attention_half(cache: Cache) -> Cache:
    """What grows with the text: an encoder–decoder's cross-attention does not."""
    own: Cache = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
    return own


def cross_layers(cache: Cache) -> list[CacheLayer]:
    """Layers of the cross-attention half; none for a decoder's cache."""
    return list(cache.cross_attention_cache.layers) if isinstance(cache, EncoderDecoderCache) else []


def adapted_layers(cache: Cache | None) -> Iterator[AdaptedLayer]:
    """The faces of the layers that grow with the text; none where only the model knows its memory."""
    return map(adapt_layer, self_attention_half(cache).layers) if cache is not None else iter(())


def cached_length(cache: Cache) -> int:
    """Tokens held so far, as an int whatever the cache counts with; 0 for states alone."""
    own = self_attention_half(cache)
    return int(own.get_seq_length()) if any(adapt_layer(layer).tokens_read() is not None for layer in own.layers) else 0


def min_length(cache: Cache) -> int:
    """How short the text can be cut: 0 where everything is still held, `NEVER` where nothing can be taken back."""
    return max((layer.min_length() for layer in adapted_layers(cache)), default=0)


def tokens_read(cache: Cache) -> int:
    """Tokens of the text so far, forgotten ones included; 0 for a recurrent state, which does not count."""
    return next((read for layer in adapted_layers(cache) if (read := layer.tokens_read())), 0)


def _wait_for_transfers(cache: Cache) -> None:
    """Layers on their way between a graphics card and main memory arrive before they are changed."""
    if self_attention_half(cache).offloading:
        torch.cuda.synchronize()
