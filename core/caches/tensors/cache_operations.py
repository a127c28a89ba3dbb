"""Edit a filled cache through its layer adapters: remove its end, keep selected tokens, reorder rows, copy."""

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

from decodescope.core.caches.measurement import Measurement
from decodescope.core.caches.tensors.adapted_layer import AdaptedLayer, CacheLayer, RowMove, Spans
from decodescope.core.caches.tensors.disk_cache import DiskCache, DiskLayer
from decodescope.core.caches.tensors.dynamic_layers import is_plain_dynamic_layer
from decodescope.core.caches.tensors.host_offload import wait_for_transfers
from decodescope.core.caches.tensors.layer_adapters import adapt_layer
from decodescope.core.errors import CacheError
from decodescope.resources.language import tr


@torch.inference_mode()
def truncate(cache: Cache, length: int) -> None:
    """Keep the first `length` tokens and release the memory of the others.

    Raises CacheError for a state, or for a window that has moved past them.
    """
    held = cached_length(cache)
    if not 0 <= length <= held:
        raise CacheError(
            tr("The cache holds {held:,} tokens and cannot be cut to {length:,}.").format(held=held, length=length),
            tr("Choose a smaller length."),
        )
    crop(cache, length)
    compact(cache)


@torch.inference_mode()
def select(cache: Cache, positions: Sequence[int] | torch.Tensor) -> None:
    """Keep the tokens at `positions` (ascending). Raises CacheError as `truncate` does."""
    indices = [int(p) for p in (positions.tolist() if isinstance(positions, torch.Tensor) else positions)]
    base = next((place for place, old in enumerate(indices) if place != old), len(indices))
    wait_for_transfers(cache)
    for layer in adapted_layers(cache):
        layer.keep_rows(base, [place - base for place in indices[base:]])
        layer.compact()


def crop(cache: Cache, length: int) -> None:
    """Drop everything after the first `length` tokens; storage stays allocated until `compact`."""
    wait_for_transfers(cache)
    total = tokens_read(cache)
    for layer in adapted_layers(cache):
        layer.truncate(min(length, total), total)


def keep_rows(cache: Cache, base: int, rows: Sequence[int]) -> None:
    """Keep `rows` (counted from `base`) of the tokens after the first `base`, in this order."""
    if list(rows) == list(range(len(rows))):
        crop(cache, base + len(rows))
        return
    wait_for_transfers(cache)
    for layer in adapted_layers(cache):
        layer.keep_rows(base, rows)


def compact(cache: Cache, keep_spare: bool = False) -> None:
    """Release memory that only removed tokens still occupy; with `keep_spare`, not the room for later tokens."""
    for layer in adapted_layers(cache):
        if not (keep_spare and layer.spare_bytes()):
            layer.compact()


def reorder(cache: Cache, rows: Sequence[int], before: int) -> None:
    """Make new row i the old row `rows[i]`, of `before` rows; a no-op if nothing changes."""
    move = RowMove(rows, before)
    if move.rows == tuple(range(before)):
        return
    wait_for_transfers(cache)
    for layer in adapted_layers(cache):
        layer.reorder(move)
    if len(rows) != before:
        alike = RowMove((0,) * len(rows), before)  # all beams read the same source, so its rows are equal
        for other in cross_layers(cache):
            adapt_layer(other).reorder(alike)


@torch.inference_mode()
def copy(cache: Cache) -> Cache:
    """Return an independent cache with the same content."""
    if isinstance(cache, EncoderDecoderCache):
        pair = EncoderDecoderCache(copy(cache.self_attention_cache), copy(cache.cross_attention_cache))
        pair.is_updated = dict(cache.is_updated)
        return pair
    if isinstance(cache, DiskCache):
        return cache.clone()
    wait_for_transfers(cache)
    twin: Cache = copying.copy(cache)
    twin.layers = [adapt_layer(layer).clone() for layer in cache.layers]
    return twin


def release_resources(cache: Cache | None) -> None:
    """Release the background threads and transfer copies of a cache that is stored for later."""
    if isinstance(cache, EncoderDecoderCache):
        release_resources(cache.self_attention_cache)
        release_resources(cache.cross_attention_cache)
    elif isinstance(cache, DiskCache):
        cache.release_resources()


def record_past(cache: Cache, on: bool) -> None:
    """Make layers keep what a crop may need again, or stop doing so."""
    for layer in adapted_layers(cache):
        layer.record_past(on)


def show_text_only(cache: Cache | None, on: bool) -> None:
    """Make fixed-size layers return only the tokens they hold, as growing layers do, or all their positions again."""
    for layer in adapted_layers(cache):
        layer.show_text_only(on)


def self_attention_half(cache: Cache) -> Cache:
    """Return the half that grows with the text (self-attention)."""
    own: Cache = cache.self_attention_cache if isinstance(cache, EncoderDecoderCache) else cache
    return own


def cross_layers(cache: Cache) -> list[CacheLayer]:
    """Return the layers of the cross-attention half; none for a decoder's cache."""
    return list(cache.cross_attention_cache.layers) if isinstance(cache, EncoderDecoderCache) else []


def adapted_layers(cache: Cache | None) -> Iterator[AdaptedLayer]:
    """Yield adapters of the layers that grow with the text; none for models with their own cache class."""
    return map(adapt_layer, self_attention_half(cache).layers) if cache is not None else iter(())


def cached_length(cache: Cache) -> int:
    """Return the number of tokens held as an int, whatever the cache counts with; 0 for states alone."""
    own = self_attention_half(cache)
    return int(own.get_seq_length()) if any(adapt_layer(layer).tokens_read() is not None for layer in own.layers) else 0


def min_length(cache: Cache) -> int:
    """Return the shortest length the text can be cropped to: 0 if everything is held, `NEVER` if nothing can be
    removed.
    """
    return max((layer.min_length() for layer in adapted_layers(cache)), default=0)


def tokens_read(cache: Cache) -> int:
    """Return the number of text tokens read so far, dropped ones included; 0 for a recurrent state, which does not
    count.
    """
    return next((read for layer in adapted_layers(cache) if (read := layer.tokens_read())), 0)


def measure_storages(cache: Cache | None) -> Measurement:
    """Sum the tensor storages that a transformers cache holds, every storage once, by layer, device and part."""
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
        sum(layers),
        cached_length(cache),
        listed,
        tuple(layers),
        _smallest_spans(every),
        _quantization_error(every),
        sum(layer.spare_bytes() for layer in every),
    )


def _named_layers(cache: Cache) -> Iterator[tuple[str, AdaptedLayer]]:
    """Yield (part name or "", layer); the halves of an encoder–decoder cache are separate parts."""
    if isinstance(cache, EncoderDecoderCache):
        yield from (("self", adapt_layer(layer)) for layer in cache.self_attention_cache.layers)
        yield from (("cross", adapt_layer(layer)) for layer in cache.cross_attention_cache.layers)
    else:
        yield from (("", adapt_layer(layer)) for layer in cache.layers)


def _smallest_spans(layers: list[AdaptedLayer]) -> Spans:
    """Return the positions that the layer with the smallest window still holds."""
    ranges = [held for layer in layers if (held := layer.held_spans())]
    return min(ranges, key=lambda held: sum(stop - start for start, stop in held), default=())


def _quantization_error(layers: list[AdaptedLayer]) -> float | None:
    """Return the relative error of quantized keys over all layers, or None."""
    sums = [pair for layer in layers if (pair := layer.error_sums()) is not None]
    lost, whole = sum(pair[0] for pair in sums), sum(pair[1] for pair in sums)
    return float((lost / whole) ** 0.5) if whole else None


@torch.inference_mode()
def copy_prefix(cache: Cache, length: int, make_empty: Callable[[], Cache | None]) -> Cache:
    """Return an independent cache with the first `length` tokens of `cache`; `make_empty` makes an empty one.

    Caches of fixed size are refilled in the size of the new run. Raises CacheError as `truncate` does.
    """
    wait_for_transfers(cache)
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
                device = getattr(old, "device", None)  # of the pass: an offloaded layer's tensors are in host memory
                keys, values = (one[:, :, :length].to(device or one.device) for one in adapt_layer(old).states())
                empty.update(keys, values, number)
        return empty
    if all(map(is_plain_dynamic_layer, self_attention_half(cache).layers)) and isinstance(cache, DynamicCache):
        return _share_prefix(cache, length)
    twin = copy(cache)
    if length < tokens_read(twin):
        truncate(twin, length)
    return twin


def _share_prefix(cache: Cache, length: int) -> Cache:
    """Return a cache of views instead of copies. This is safe: a plain layer concatenates old and new tokens into new
    storage before it changes anything in place, and a run that starts from a prefix reads at least one token first.
    """
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
    """Copy a static window that has already moved: it has the same width in every run."""
    states = adapt_layer(old).states()
    new.lazy_initialization(*states)
    for empty, full in zip(adapt_layer(new).states(), states, strict=True):
        empty.copy_(full)
    new.cumulative_length.copy_(old.cumulative_length)
    new.cumulative_length_int = old.cumulative_length_int
