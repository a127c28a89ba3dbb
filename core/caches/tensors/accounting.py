"""Counting bytes: every storage a cache holds, once, by layer, place and part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from core.caches.base import Measurement

_PARTS = ("keys", "values")


def measure_storages(cache: Any) -> Measurement:
    """Sum of the tensor storages a transformers cache holds, every storage once, by layer, place and part.

    A layer with a method `stored()` names its own pieces: (place, part, tensor, bytes of it that are in use).
    """
    if cache is None:
        return Measurement(0, 0)
    seen: set[tuple[str, int]] = set()
    parts: dict[tuple[str, str], int] = {}
    layers: list[int] = []
    for kind, layer in _layers(cache):
        total = 0
        for place, part, tensor, size in pieces(layer):
            key = (str(tensor.device), tensor.untyped_storage().data_ptr())
            if key in seen or size == 0:
                continue
            seen.add(key)
            parts[place, kind or part] = parts.get((place, kind or part), 0) + size
            total += size
        layers.append(total)
    listed = tuple((place, part, size) for (place, part), size in parts.items())
    return Measurement(sum(layers), _length(cache), listed, tuple(layers), _held(cache), _error(cache))


def pieces(layer: Any) -> Iterator[tuple[str, str, torch.Tensor, int]]:
    """(place, part, tensor, bytes) of everything one layer keeps."""
    if hasattr(layer, "stored"):
        yield from layer.stored()
        return
    for name, value in vars(layer).items():
        for tensor in _tensors(value):
            part = name if name in _PARTS else "state"
            yield place_of(tensor), part, tensor, tensor.untyped_storage().nbytes()


def place_of(tensor: torch.Tensor) -> str:
    """`host` for a tensor in main memory, `device` elsewhere."""
    return "host" if tensor.device.type == "cpu" else "device"


def _layers(cache: Any) -> Iterator[tuple[str, Any]]:
    """(part name or "", layer): an encoder–decoder's halves are parts of their own."""
    if hasattr(cache, "self_attention_cache"):
        yield from (("self", layer) for layer in cache.self_attention_cache.layers)
        yield from (("cross", layer) for layer in cache.cross_attention_cache.layers)
    else:
        yield from (("", layer) for layer in getattr(cache, "layers", ()))


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, torch.Tensor))


def _length(cache: Any) -> int:
    try:
        return int(cache.get_seq_length())
    except (ValueError, IndexError, AttributeError):  # a purely recurrent state has no length
        return 0


def _held(cache: Any) -> tuple[tuple[int, int], ...]:
    """What the layer that forgets most still holds."""
    ranges: list[tuple[tuple[int, int], ...]] = [layer.held() for _, layer in _layers(cache) if hasattr(layer, "held")]
    return min(ranges, key=lambda held: sum(stop - start for start, stop in held), default=())


def _error(cache: Any) -> float | None:
    """Relative error of quantized keys over all layers."""
    sums = [layer.squares for _, layer in _layers(cache) if hasattr(layer, "squares")]
    lost, whole = sum(float(pair[0]) for pair in sums), sum(float(pair[1]) for pair in sums)
    return (lost / whole) ** 0.5 if whole else None
