"""Adapters that give transformers' cache layers the interface of `AdaptedLayer`, one per kind of layer."""

from __future__ import annotations

import copy as copying
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import torch
from transformers.cache_utils import (
    CacheLayerMixin,
    DummyLayer,
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionCacheLayerMixin,
    StaticLayer,
    StaticSlidingWindowLayer,
)

from decodescope.core.caches.tensors.adapted_layer import (
    NEVER,
    REMEDY,
    AdaptedLayer,
    CacheLayer,
    RowMove,
    Spans,
    StoredTensor,
    clone_layer,
    compact_tensor,
    stored_tensor,
    window_moved_error,
)
from decodescope.core.caches.tensors.dynamic_layers import PreallocatedLayer, WindowLayer
from decodescope.core.errors import CacheError
from decodescope.core.system.gpu import upload
from decodescope.resources.language import tr

K = TypeVar("K")


class LayerAdapter(AdaptedLayer, Generic[K]):
    """Adapter of any layer: it can be measured, copied and reordered, but not cropped."""

    def __init__(self, layer: K) -> None:
        self.layer: Any = layer

    def tokens_read(self) -> int | None:
        return int(self.layer.get_seq_length())

    def min_length(self) -> int:
        return NEVER

    def truncate(self, length: int, total: int) -> None:
        if length < total:
            raise self._unsupported_error(tr("A layer of type {kind} cannot drop its last tokens."))

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        raise self._unsupported_error(tr("A layer of type {kind} cannot keep only selected positions."))

    def reorder(self, move: RowMove) -> None:
        self.layer.reorder_cache(move.index(self._device))

    @property
    def _device(self) -> torch.device:
        """Device where the layer is now."""
        keys = getattr(self.layer, "keys", None)
        return keys.device if isinstance(keys, torch.Tensor) else torch.device("cpu")

    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.layer.keys, self.layer.values

    def clone(self) -> CacheLayer:
        twin: CacheLayer = clone_layer(self.layer)
        return twin

    def stored_tensors(self) -> Iterator[StoredTensor]:
        for name, value in vars(self.layer).items():
            for tensor in _tensors(value):
                yield stored_tensor(name if name in ("keys", "values") else "state", tensor)

    def _unsupported_error(self, detail: str) -> CacheError:
        return CacheError(detail.format(kind=type(self.layer).__name__), tr(REMEDY))


class EmptyLayerAdapter(LayerAdapter[DummyLayer]):
    """Adapter of a layer that stores nothing: it uses another layer's cache, or has no attention."""

    def tokens_read(self) -> int | None:
        return None

    def min_length(self) -> int:
        return 0

    def truncate(self, length: int, total: int) -> None:
        return

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        return


class StateLayerAdapter(LayerAdapter[LinearAttentionCacheLayerMixin]):
    """Adapter of a state of constant size, alone or with keys and values.

    If the state holds only the latest inputs (of a convolution) and the past is recorded, tokens can be removed.
    """

    def tokens_read(self) -> int | None:
        return int(self.layer.get_seq_length()) if isinstance(self.layer, CacheLayerMixin) else None

    def truncate(self, length: int, total: int) -> None:
        if length == total or not self._is_filled:
            return
        if not (self.layer.is_croppable and self.layer.record_past):
            raise CacheError(tr("A recurrent state cannot be rolled back."), tr(REMEDY))
        self.layer.crop(length - total)

    def compact(self) -> None:
        if self._is_filled and self.layer.is_croppable and self.layer.record_past:
            self.layer.crop(0)

    def record_past(self, on: bool) -> None:
        self.layer.record_past = on

    @property
    def _is_filled(self) -> bool:
        started = (self.layer.is_conv_states_initialized, self.layer.is_recurrent_states_initialized)
        return any(any(states.values()) for states in started)


class DynamicLayerAdapter(LayerAdapter[DynamicLayer]):
    """Adapter of a layer that keeps the keys and values of every token."""

    def min_length(self) -> int:
        return 0

    def truncate(self, length: int, total: int) -> None:
        if self._is_filled and self.layer.keys.shape[-2] > length:
            self._slice(slice(length))

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        if not self._is_filled:
            return
        stop = base + len(rows)
        if list(rows) != list(range(len(rows))):
            index = upload([base + row for row in rows], self.layer.keys.device)
            for tensor in (self.layer.keys, self.layer.values):
                tensor[..., base:stop, :] = tensor.index_select(-2, index)
        self._slice(slice(stop))

    def reorder(self, move: RowMove) -> None:
        """Reorder in place, and only the changed rows, if their number stays the same."""
        if not self._is_filled or len(move.rows) != move.before:
            self.layer.reorder_cache(move.index(self._device))
            return
        places, sources = move.changes(self._device)
        for tensor in (self.layer.keys, self.layer.values):
            tensor.index_copy_(0, places, tensor.index_select(0, sources))

    def compact(self) -> None:
        if self._is_filled:
            self.layer.keys, self.layer.values = compact_tensor(self.layer.keys), compact_tensor(self.layer.values)

    def _slice(self, tokens: slice) -> None:
        self.layer.keys, self.layer.values = self.layer.keys[..., tokens, :], self.layer.values[..., tokens, :]

    @property
    def _is_filled(self) -> bool:
        return bool(self.layer.is_initialized and self.layer.keys is not None and self.layer.keys.numel())


class PreallocatedLayerAdapter(DynamicLayerAdapter):
    """Adapter of a dynamic layer with optional extra capacity: removed tokens become free capacity, which `spare_bytes`
    counts and `compact` releases.
    """

    def truncate(self, length: int, total: int) -> None:
        self.layer.shorten(length)

    def clone(self) -> PreallocatedLayer:
        twin: PreallocatedLayer = copying.copy(self.layer)
        if twin.keys is not None and twin.values is not None:
            twin.keys, twin.values = twin.keys.clone(), twin.values.clone()
        return twin

    def stored_tensors(self) -> Iterator[StoredTensor]:
        for part in ("keys", "values"):
            if (states := getattr(self.layer, part)) is not None:
                stored = stored_tensor(part, states)
                used = states.numel() * states.element_size()
                yield stored._replace(bytes=used) if self.layer.storage is not None else stored

    def spare_bytes(self) -> int:
        spare: int = self.layer.spare_bytes
        return spare

    def _slice(self, tokens: slice) -> None:
        self.layer.shorten(tokens.stop)


_INDEXED_DIMENSIONS = {"keys": -2, "values": -2, "indexer_keys": 1, "indexer_position_ids": -1}
"""Dimension of the positions in the tensors of a layer with an index (DeepSeek 3.2)."""


class IndexedLayerAdapter(DynamicLayerAdapter):
    """Adapter of a layer that keeps more than keys and values (such as an index of the few tokens worth attending
    to).
    """

    def truncate(self, length: int, total: int) -> None:
        if self._is_filled and self.layer.get_seq_length() > length:
            self.layer.crop(length - self.layer.get_seq_length())

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        if list(rows) == list(range(len(rows))):
            self.truncate(base + len(rows), self.layer.get_seq_length())
            return
        tensors = {name: value for name, value in vars(self.layer).items() if isinstance(value, torch.Tensor)}
        if not tensors.keys() <= _INDEXED_DIMENSIONS.keys():
            raise self._unsupported_error(tr("A layer of type {kind} cannot keep only selected positions."))
        shown = upload([*range(base), *(base + row for row in rows)], self.layer.keys.device)
        for name, tensor in tensors.items():
            setattr(self.layer, name, tensor.index_select(_INDEXED_DIMENSIONS[name], shown))

    def reorder(self, move: RowMove) -> None:
        self.layer.reorder_cache(move.index(self._device))

    def compact(self) -> None:
        for name, value in list(vars(self.layer).items()):
            if isinstance(value, torch.Tensor):
                setattr(self.layer, name, compact_tensor(value))


class WindowLayerAdapter(DynamicLayerAdapter):
    """Adapter of a layer that keeps its window, except the current token."""

    def min_length(self) -> int:
        gone = self._dropped
        return gone + int(self.layer.sliding_window) - 1 if gone else 0

    def truncate(self, length: int, total: int) -> None:
        if self._is_filled and length < self.layer.cumulative_length:
            self.keep_rows(length, ())

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Keep the given tokens. The layer must still hold every token in the shorter text's window."""
        if not self._is_filled:
            return
        count, gone = base + len(rows), self._dropped
        shown = [*range(base), *(base + row for row in rows)][-(int(self.layer.sliding_window) - 1) :]
        if gone and (base < gone or count < self.min_length()):
            raise window_moved_error(count)
        index = upload([place - gone for place in shown], self.layer.keys.device, torch.long)
        self.layer.keys = self.layer.keys.index_select(-2, index)
        self.layer.values = self.layer.values.index_select(-2, index)
        self.layer.cumulative_length = count

    def held_spans(self) -> Spans:
        end = int(self.layer.cumulative_length)
        return ((self._dropped, end),)

    def record_past(self, on: bool) -> None:
        self.layer.record_past = on

    @property
    def _dropped(self) -> int:
        count = self.layer.keys.shape[-2] if self._is_filled else 0
        return int(self.layer.cumulative_length) - count if count else 0


class StaticLayerAdapter(LayerAdapter[StaticLayer]):
    """Adapter of a preallocated layer whose storage is fixed."""

    def min_length(self) -> int:
        return 0

    def truncate(self, length: int, total: int) -> None:
        """Zero the end and set the length."""
        if self.layer.is_initialized and length < self.layer.get_seq_length():
            self.layer.keys[:, :, length:].zero_()
            self.layer.values[:, :, length:].zero_()
            self.layer.cumulative_length.fill_(length)

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        if not self.layer.is_initialized:
            return
        stop = base + len(rows)
        index = upload([base + row for row in rows], self.layer.keys.device, torch.long)
        for tensor in (self.layer.keys, self.layer.values):
            tensor[:, :, base:stop] = tensor.index_select(2, index)
        self.truncate(stop, int(self.layer.get_seq_length()))


class StaticWindowLayerAdapter(StaticLayerAdapter):
    """Adapter of a preallocated window; once it is full, nothing can be removed."""

    def min_length(self) -> int:
        return NEVER if self.layer.cumulative_length_int > self.layer.max_cache_len else 0

    def truncate(self, length: int, total: int) -> None:
        if self.min_length():
            raise window_moved_error(length)
        if self.layer.is_initialized and length < self.layer.cumulative_length_int:
            super().truncate(length, total)
            self.layer.cumulative_length_int = length

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        if self.min_length():
            raise window_moved_error(base + len(rows))
        super().keep_rows(base, rows)


_Adapter = type[LayerAdapter[Any]]
_ADAPTERS_BY_CLASS: dict[type, _Adapter] = {
    DynamicLayer: DynamicLayerAdapter,
    PreallocatedLayer: PreallocatedLayerAdapter,
    DynamicSlidingWindowLayer: WindowLayerAdapter,
    WindowLayer: WindowLayerAdapter,
}
"""Adapters by exact class; classes met at run time are added."""
_ADAPTERS_BY_BASE: tuple[tuple[type, _Adapter], ...] = (
    (DummyLayer, EmptyLayerAdapter),
    (LinearAttentionCacheLayerMixin, StateLayerAdapter),
    (StaticSlidingWindowLayer, StaticWindowLayerAdapter),
    (StaticLayer, StaticLayerAdapter),
    (DynamicSlidingWindowLayer, LayerAdapter),
    (DynamicLayer, IndexedLayerAdapter),
)
"""Adapters by base class; the first match counts. Subclasses defined by models keep more than keys and values, so they
are cropped with their own `crop`.
"""


def adapt_layer(layer: CacheLayer) -> AdaptedLayer:
    """Return the layer itself if it is an `AdaptedLayer`, otherwise its adapter."""
    if isinstance(layer, AdaptedLayer):
        return layer
    kind = type(layer)
    if kind not in _ADAPTERS_BY_CLASS:
        _ADAPTERS_BY_CLASS[kind] = next(
            (adapter for base, adapter in _ADAPTERS_BY_BASE if issubclass(kind, base)), LayerAdapter
        )
    return _ADAPTERS_BY_CLASS[kind](layer)


def _tensors(value: object) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from (item for item in value.values() if isinstance(item, torch.Tensor))
