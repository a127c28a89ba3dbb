"""Windowed layers, and caches laid out with or without them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import torch
from transformers.cache_utils import (
    Cache,
    DynamicCache,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    EncoderDecoderCache,
    LinearAttentionAndSlidingWindowAttentionLayer,
)

from decodescope.core.caches.tensors.adapted_layer import CacheLayer, compact_tensor
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.resources.language import tr


class KeyValueStorage(NamedTuple):
    """Storages of keys and values [B, H, positions, D], contiguous, with their addresses."""

    keys: torch.Tensor
    values: torch.Tensor
    keys_address: int
    values_address: int
    capacity: int

    @staticmethod
    def allocate_like(states: torch.Tensor, capacity: int) -> KeyValueStorage:
        """Allocate uninitialized storages for the rows and heads of keys [B, H, T, D]."""
        texts, heads, _, width = states.shape
        keys, values = (states.new_empty(texts, heads, capacity, width) for _ in range(2))
        return KeyValueStorage(keys, values, keys.data_ptr(), values.data_ptr(), capacity)


class PreallocatedLayer(DynamicLayer):
    """transformers' growing layer with optional extra capacity after the tokens it holds.

    `keys` and `values` show the tokens without the extra capacity. Their views are created on access, since a pass that
    writes into the capacity does not need them; setting them replaces the layer's content. Until storages with extra
    capacity are assigned, it behaves like transformers' layer.
    """

    def __init__(self) -> None:
        self._storage: KeyValueStorage | None = None
        self._cached_views: tuple[torch.Tensor | None, torch.Tensor | None] | None = (None, None)
        self._length = 0
        DynamicLayer.__init__(self)

    @property
    def keys(self) -> torch.Tensor | None:
        """Keys [B, H, T, D]; None before anything was read."""
        return self._views()[0]

    @keys.setter
    def keys(self, states: torch.Tensor | None) -> None:
        self._cached_views, self._storage = (states, self._views()[1]), None
        self._length = states.shape[-2] if states is not None and states.dim() > 1 else 0

    @property
    def values(self) -> torch.Tensor | None:
        """Values [B, H, T, D]; None before anything was read."""
        return self._views()[1]

    @values.setter
    def values(self, states: torch.Tensor | None) -> None:
        self._cached_views, self._storage = (self._views()[0], states), None

    @property
    def storage(self) -> KeyValueStorage | None:
        """Storages that hold the tokens, if the layer has its own."""
        return self._storage

    @property
    def states_dtype(self) -> torch.dtype | None:
        """Dtype of keys and values; None before anything was read."""
        states = self._storage.keys if self._storage else self._views()[0]
        return None if states is None else states.dtype

    @property
    def spare_bytes(self) -> int:
        """Bytes that are allocated for later tokens."""
        if self._storage is None:
            return 0
        keys = self._storage.keys
        spare = self._storage.capacity - self._length
        return 2 * spare * keys.shape[0] * keys.shape[1] * keys.shape[3] * keys.element_size()

    @property
    def row_count(self) -> int:
        """Number of rows; 0 before anything was read."""
        states = self._storage.keys if self._storage else self._views()[0]
        return len(states) if states is not None and self._length else 0

    def get_seq_length(self) -> int:
        """Return the number of tokens held."""
        return self._length

    def reserve(self, count: int) -> bool:
        """Reserve positions for `count` more tokens, which the caller then writes; return False if the capacity is too
        small.
        """
        if self._storage is None or self._length + count > self._storage.capacity:
            return False
        self._length += count
        self._cached_views = None
        return True

    def set_storage(self, storage: KeyValueStorage, length: int) -> None:
        """Use the first `length` tokens of the given storages."""
        self._storage, self._length, self._cached_views = storage, length, None

    def shorten(self, length: int) -> None:
        """Drop all but the first `length` tokens and reuse their positions."""
        if length >= self._length:
            return
        if self._storage is not None:
            self._length, self._cached_views = length, None
            return
        keys, values = self._views()
        assert keys is not None
        assert values is not None
        self.keys, self.values = keys[..., :length, :], values[..., :length, :]

    def copy_last_token(self, row: torch.Tensor) -> None:
        """Copy the last token of row `row` [1] to all rows; layers that the decoder does not fill stay empty."""
        for states in self._views() if self._length else ():
            assert states is not None
            last = states[:, :, -1:]
            last.copy_(last.index_select(0, row))

    def crop(self, tokens_to_remove: int) -> None:
        """Drop `tokens_to_remove` tokens; transformers passes a negative number."""
        if self._storage is None:
            super().crop(tokens_to_remove)
        else:
            self.shorten(self._length - abs(tokens_to_remove))

    def _views(self) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        if self._cached_views is None:
            assert self._storage is not None
            keys, values = self._storage.keys, self._storage.values
            self._cached_views = keys[..., : self._length, :], values[..., : self._length, :]
        return self._cached_views


def is_plain_dynamic_layer(layer: object) -> TypeGuard[DynamicLayer]:
    """Return whether a layer holds exactly every token in text order: transformers' growing layer or this one."""
    return type(layer) in (DynamicLayer, PreallocatedLayer)


@dataclass(frozen=True, slots=True)
class CompressorShape:
    """Sizes of one compressor of one layer, in bytes per row."""

    rate: int
    """Tokens that are compressed into one entry."""
    buffered: int
    """Bytes of one buffered token."""
    entry: int
    overlap: int
    """Bytes kept of the last compressed tokens for the next entry; 0 if entries do not overlap."""


def is_compressed(layer: object) -> bool:
    """Return whether the layer buffers tokens and compresses them."""
    return hasattr(layer, "store_compression_weights") and hasattr(layer, "compress_rate")


def compact_compressed(layer: Any) -> Any:
    """Make the layer store no more than it returns; otherwise its window and buffers are views of all tokens read."""
    kind: Any = type(layer)
    layer.__class__ = _compact_class(kind)
    return layer


@functools.cache
def _compact_class(base: Any) -> Any:
    """Derive from a compressed-attention layer class one that stores no more than it returns."""

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
    """Return how many tokens must be read until every compressor of `layers` has an entry and a buffered token."""
    return 1 + max((int(layer.compress_rate) for layer in layers if is_compressed(layer)), default=0)


def has_entries(layer: Any) -> bool:
    """Return whether every compressor of the layer has an entry and a buffered token, so that their sizes can be
    read.
    """
    return all(layer.entry_count[name] and layer.buffer_kv[name].shape[1] for name in layer.buffer_kv)


def compressor_shapes(layer: Any, rows: int) -> Iterator[CompressorShape]:
    """Yield the sizes of a layer that `has_entries` and was filled for `rows` rows."""
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


class WindowLayer(DynamicSlidingWindowLayer):
    """transformers' windowed layer, without a view over a longer storage."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, sliding_window: int) -> None:
        super().__init__(sliding_window)
        del self._sliding_window_tensor  # duplicates the number as a tensor, which would count as a state

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Create empty keys and values of the given dtype and device."""
        DynamicLayer.lazy_initialization(self, key_states, value_states)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens [B, H, n, D], return what they attend to, and free tokens outside the window."""
        seen = super().update(key_states, value_states, *args, **kwargs)
        self.keys, self.values = compact_tensor(self.keys), compact_tensor(self.values)
        return seen


class HybridWindowLayer(LinearAttentionAndSlidingWindowAttentionLayer):
    """transformers' layer with a window and a state, which stores only the window."""

    keys: torch.Tensor
    values: torch.Tensor

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens [B, H, n, D], return what they attend to, and free tokens outside the window."""
        seen = super().update(key_states, value_states, *args, **kwargs)
        self.keys, self.values = compact_tensor(self.keys), compact_tensor(self.values)
        return seen


def config_cache(model: LoadedModel) -> Cache:
    """Return a decoder's cache as the configuration specifies it: windows, states, placeholders."""
    return _build_layout(model, WindowLayer)


def without_windows(model: LoadedModel) -> Cache:
    """Return the same cache, except that windowed attention layers keep all tokens (their mask still hides distant
    ones).
    """
    return _build_layout(model, lambda window: _full_layer())


def with_cross_attention(model: LoadedModel, own: Cache) -> Cache:
    """Return `own` for a decoder, otherwise both halves; cross-attention sees the full source in every layer."""
    if not model.is_encoder_decoder:
        return own
    cross = DynamicCache()
    cross.layers = [_full_layer() for _ in own.layers]
    return EncoderDecoderCache(own, cross)


def pair_halves(own: Cache | None, other: Cache | None) -> EncoderDecoderCache:
    """Combine the self-attention half of one encoder–decoder cache with the cross-attention half of another."""
    if not (isinstance(own, EncoderDecoderCache) and isinstance(other, EncoderDecoderCache)):
        raise TypeError(tr("both must be caches of an encoder–decoder model"))
    return EncoderDecoderCache(own.self_attention_cache, other.cross_attention_cache)


def _build_layout(model: LoadedModel, windowed: Callable[[int], DynamicLayer]) -> Cache:
    cache = DynamicCache(config=model.config)
    cache.layers = [
        windowed(layer.sliding_window) if type(layer) is DynamicSlidingWindowLayer else _replacement(layer)
        for layer in cache.layers
    ]
    return cache


def _replacement(layer: CacheLayer) -> CacheLayer:
    """Return a layer that stores the same tokens in less memory or time, or the layer itself."""
    if type(layer) is DynamicLayer:
        return PreallocatedLayer()
    if type(layer) is LinearAttentionAndSlidingWindowAttentionLayer:
        return HybridWindowLayer(layer.sliding_window, layer.number_of_states)
    return compact_compressed(layer) if is_compressed(layer) else layer


def _full_layer() -> DynamicLayer:
    return PreallocatedLayer()
