"""Changing a filled cache: forgetting its end, keeping chosen tokens, moving rows, copying; by its layers' faces."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable, Iterator, Sequence

import torch
from transformers.cache_utils import (
    Cache,
    DynamicCache,
    DynamicLayer,
    EncoderDecoderCache,
    StaticLayer,
    StaticSlidingWindowLayer,
)

from core.caches.base import Measurement
from core.caches.tensors.adapted_layer import AdaptedLayer, CacheLayer, RowMove, Spans
from core.caches.tensors.disk_cache import DiskCache, DiskLayer
from core.caches.tensors.dynamic_layers import is_plain_dynamic_layer
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


def measure_storages(cache: Cache | None) -> Measurement:
    """Sum of the tensor storages a transformers cache holds, every storage once, by layer, place and part."""
    if cache is None:
        return Measurement(0, 0)
    seen: set[tuple[str, int]] = set()
    parts: dict[tuple[str, str], int] = {}
    layers: list[int] = []
    for half, layer in _named_layers(cache):
        total = 0
        for place, part, tensor, size in layer.stored_tensors():
            key = (str(tensor.device), tensor.untyped_storage().data_ptr())
            if key in seen or size == 0:
                continue
            seen.add(key)
            parts[place, half or part] = parts.get((place, half or part), 0) + size
            total += size
        layers.append(total)
    listed = tuple((place, part, size) for (place, part), size in parts.items())
    every = [layer for _, layer in _named_layers(cache)]
    return Measurement(
        sum(layers), cached_length(cache), listed, tuple(layers), _smallest_spans(every), _quantization_error(every)
    )


def _named_layers(cache: Cache) -> Iterator[tuple[str, AdaptedLayer]]:
    """(part name or "", layer): an encoder–decoder's halves are parts of their own."""
    if isinstance(cache, EncoderDecoderCache):
        yield from (("self", adapt_layer(layer)) for layer in cache.self_attention_cache.layers)
        yield from (("cross", adapt_layer(layer)) for layer in cache.cross_attention_cache.layers)
    else:
        yield from (("", adapt_layer(layer)) for layer in cache.layers)


def _smallest_spans(layers: list[AdaptedLayer]) -> Spans:
    """What the layer that forgets most still holds."""
    ranges = [held for layer in layers if (held := layer.held_spans())]
    return min(ranges, key=lambda held: sum(stop - start for start, stop in held), default=())


def _quantization_error(layers: list[AdaptedLayer]) -> float | None:
    """Relative error of quantized keys over all layers."""
    sums = [pair for layer in layers if (pair := layer.error_sums()) is not None]
    lost, whole = sum(pair[0] for pair in sums), sum(pair[1] for pair in sums)
    return float((lost / whole) ** 0.5) if whole else None


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
