"""Layers that keep a window, and caches laid out with or without them."""

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

from core.caches.tensors.adapted_layer import CacheLayer, compact_tensor
from core.models.loaded_model import LoadedModel
from resources.language import tr


class KeyValueStorage(NamedTuple):
    """Storages of keys and values [B, H, places, D], number behind number, and where they lie."""

    keys: torch.Tensor
    values: torch.Tensor
    keys_address: int
    values_address: int
    capacity: int

    @staticmethod
    def allocate_like(states: torch.Tensor, capacity: int) -> KeyValueStorage:
        """New ones for as many texts and heads as keys [B, H, T, D] have, filled with nothing."""
        texts, heads, _, width = states.shape
        keys, values = (states.new_empty(texts, heads, capacity, width) for _ in range(2))
        return KeyValueStorage(keys, values, keys.data_ptr(), values.data_ptr(), capacity)


class PreallocatedLayer(DynamicLayer):
    """transformers' growing layer, which may have room behind the tokens it holds.

    `keys` and `values` show the tokens and no room; views are made when somebody looks, since a pass that takes its
    room needs none. Who sets them sets all that the layer holds. Until somebody gives it storages with room, it is
    transformers' layer.
    """

    def __init__(self) -> None:
        self._storage: KeyValueStorage | None = None
        self._cached_views: tuple[torch.Tensor | None, torch.Tensor | None] | None = (None, None)
        self._length = 0
        DynamicLayer.__init__(self)

    @property
    def keys(self) -> torch.Tensor | None:
        """[B, H, T, D]; None before anything was read."""
        return self._views()[0]

    @keys.setter
    def keys(self, states: torch.Tensor | None) -> None:
        self._cached_views, self._storage = (states, self._views()[1]), None
        self._length = states.shape[-2] if states is not None and states.dim() > 1 else 0

    @property
    def values(self) -> torch.Tensor | None:
        """The same."""
        return self._views()[1]

    @values.setter
    def values(self, states: torch.Tensor | None) -> None:
        self._cached_views, self._storage = (self._views()[0], states), None

    @property
    def storage(self) -> KeyValueStorage | None:
        """Where its tokens lie, where that may have room."""
        return self._storage

    @property
    def row_count(self) -> int:
        """Rows side by side; 0 before anything was read."""
        states = self._storage.keys if self._storage else self._views()[0]
        return len(states) if states is not None and self._length else 0

    def get_seq_length(self) -> int:
        """Tokens held."""
        return self._length

    def reserve(self, count: int) -> bool:
        """Hold `count` tokens more, which somebody is about to write behind the others, if there is room."""
        if self._storage is None or self._length + count > self._storage.capacity:
            return False
        self._length += count
        self._cached_views = None
        return True

    def set_storage(self, storage: KeyValueStorage, length: int) -> None:
        """Hold the first `length` tokens of other storages."""
        self._storage, self._length, self._cached_views = storage, length, None

    def shorten(self, length: int) -> None:
        """Forget all but the first `length` tokens, whose places are room again."""
        if length >= self._length:
            return
        if self._storage is not None:
            self._length, self._cached_views = length, None
            return
        keys, values = self._views()
        assert keys is not None
        assert values is not None
        self.keys, self.values = keys[..., :length, :], values[..., :length, :]

    def crop(self, tokens_to_remove: int) -> None:
        """Forget so many tokens; the number is negative, as transformers counts."""
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
    """Whether a layer holds every token in the order of the text and nothing else: transformers' growing one, or this
    one."""
    return type(layer) in (DynamicLayer, PreallocatedLayer)


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


class WindowLayer(DynamicSlidingWindowLayer):
    """transformers' windowed layer, made to hold only what it shows: no view over a longer storage."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, sliding_window: int) -> None:
        super().__init__(sliding_window)
        del self._sliding_window_tensor  # the number again, as a tensor: it would count as a state

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Empty keys and values of the given type and device."""
        DynamicLayer.lazy_initialization(self, key_states, value_states)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens [B, H, n, D]; what they attend to comes back, what the window has passed is freed."""
        seen = super().update(key_states, value_states, *args, **kwargs)
        self.keys, self.values = compact_tensor(self.keys), compact_tensor(self.values)
        return seen


class HybridWindowLayer(LinearAttentionAndSlidingWindowAttentionLayer):
    """transformers' layer with a window and a state, which stores no more of the window than it shows."""

    keys: torch.Tensor
    values: torch.Tensor

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Add tokens [B, H, n, D] and return what they attend to; the memory of tokens outside the window is freed."""
        seen = super().update(key_states, value_states, *args, **kwargs)
        self.keys, self.values = compact_tensor(self.keys), compact_tensor(self.values)
        return seen


def config_cache(model: LoadedModel) -> Cache:
    """A decoder's cache as the model's configuration lays it out: windows, states, placeholders."""
    return _build_layout(model, WindowLayer)


def without_windows(model: LoadedModel) -> Cache:
    """The same, but windowed attention layers keep everything too (their mask still hides what is out of reach)."""
    return _build_layout(model, lambda window: _full_layer())


def with_cross_attention(model: LoadedModel, own: Cache) -> Cache:
    """`own` for a decoder; for an encoder–decoder both halves: cross-attention sees the whole source in every layer."""
    if not model.is_encoder_decoder:
        return own
    cross = DynamicCache()
    cross.layers = [_full_layer() for _ in own.layers]
    return EncoderDecoderCache(own, cross)


def pair_halves(own: Cache | None, other: Cache | None) -> EncoderDecoderCache:
    """The written half of one encoder–decoder's cache with the read half of another."""
    if not (isinstance(own, EncoderDecoderCache) and isinstance(other, EncoderDecoderCache)):
        raise TypeError(tr("both have to be caches of an encoder–decoder"))
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
