"""Layers of compressed attention (DeepSeek-V4): a window of keys, and entries that stand for several tokens each.

A compressor buffers tokens until they are as many as its rate, then replaces them by one entry.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from core.caches.tensors.adapted_layer import compact_tensor


@dataclass(frozen=True, slots=True)
class CompressorShape:
    """One compressor of one layer, in bytes for one row."""

    rate: int
    """Tokens that become one entry."""
    buffered: int
    """A token that waits to be compressed."""
    entry: int
    overlap: int
    """What is kept of the last tokens that were compressed, for the next entry; 0 when entries do not overlap."""


def is_compressed(layer: object) -> bool:
    """Whether the layer buffers tokens and compresses them."""
    return hasattr(layer, "store_compression_weights") and hasattr(layer, "compress_rate")


def compact_compressed(layer: Any) -> Any:
    """Make the layer store no more than it shows; its window and buffers are views of all tokens read otherwise."""
    kind: Any = type(layer)
    layer.__class__ = _compact_class(kind)
    return layer


@functools.cache
def _compact_class(base: Any) -> Any:
    """Derive from a layer class of compressed attention one that stores no more than it shows."""

    class CompactCompressedLayer(base):  # type: ignore[misc]  # a class found at run time
        keys: torch.Tensor
        values: torch.Tensor
        _layer_type = None  # with its type, transformers would register the class for every cache

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
        ) -> tuple[torch.Tensor, torch.Tensor]:
            seen: tuple[torch.Tensor, torch.Tensor] = super().update(key_states, value_states, *args, **kwargs)
            is_shared = self.values is self.keys
            self.keys = compact_tensor(self.keys)
            self.values = self.keys if is_shared else compact_tensor(self.values)
            return seen

        def store_compression_weights(self, name: str, kv: torch.Tensor, gate: torch.Tensor) -> Any:
            ready = super().store_compression_weights(name, kv, gate)
            for buffer in (self.buffer_kv, self.buffer_gate):
                buffer[name] = compact_tensor(buffer[name])
            return ready

        def reorder_cache(self, beam_idx: torch.LongTensor) -> None:
            is_shared = self.values is self.keys
            super().reorder_cache(beam_idx)
            if is_shared:
                self.values = self.keys

    CompactCompressedLayer._layer_type = base._layer_type
    CompactCompressedLayer.__name__ = f"Compact{base.__name__}"
    return CompactCompressedLayer


def trial_length(layers: list[Any]) -> int:
    """Return how many tokens have to be read until every compressor of `layers` has an entry and buffers a token."""
    return 1 + max((int(layer.compress_rate) for layer in layers if is_compressed(layer)), default=0)


def has_entries(layer: Any) -> bool:
    """Whether every compressor of the layer has an entry and buffers a token, so that their sizes can be read."""
    return all(layer.entry_count[name] and layer.buffer_kv[name].shape[1] for name in layer.buffer_kv)


def compressor_shapes(layer: Any, rows: int) -> Iterator[CompressorShape]:
    """Read the sizes of a layer that `has_entries` and was filled for `rows` rows."""
    for name in layer.buffer_kv:
        buffers = [layer.buffer_kv[name], layer.buffer_gate[name]]
        overlaps = [getattr(layer, kind, {}).get(name) for kind in ("overlap_kv", "overlap_gate")]
        entries = layer.compressed_kv[name]
        yield CompressorShape(
            rate=int(layer.compress_rate),
            buffered=sum(_bytes(buffer) // buffer.shape[1] for buffer in buffers) // rows,
            entry=_bytes(entries) // entries.shape[1] // rows,
            overlap=sum(_bytes(overlap) for overlap in overlaps if overlap is not None) // rows,
        )


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
