"""Counting bytes: every storage a cache holds, once, by layer, place and part."""

from __future__ import annotations

from collections.abc import Iterator

from transformers.cache_utils import Cache, EncoderDecoderCache

from core.caches.measurement import Measurement
from core.caches.tensors.adapted_layer import AdaptedLayer, Spans
from core.caches.tensors.cache_editing import cached_length
from core.caches.tensors.layer_adapters import adapt_layer


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
