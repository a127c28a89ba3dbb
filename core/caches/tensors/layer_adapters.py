"""transformers' own layers with the face of `AdaptedLayer`: one adapter for each kind of memory."""

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

from core.caches.tensors.adapted_layer import (
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
from core.caches.tensors.dynamic_layers import PreallocatedLayer, WindowLayer
from core.errors import CacheError
from resources.language import tr

K = TypeVar("K")


class LayerAdapter(AdaptedLayer, Generic[K]):
    """A layer of whatever kind: it can be measured, copied and reordered; nothing is known of how to cut it."""

    def __init__(self, layer: K) -> None:
        self.layer: Any = layer

    def tokens_read(self) -> int | None:
        return int(self.layer.get_seq_length())

    def min_length(self) -> int:
        return NEVER

    def truncate(self, length: int, total: int) -> None:
        if length < total:
            raise self._unsupported_error(tr("A layer of the kind {kind} cannot forget its last tokens."))

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        raise self._unsupported_error(tr("A layer of the kind {kind} cannot keep tokens at chosen places."))

    def reorder(self, move: RowMove) -> None:
        self.layer.reorder_cache(move.index)

    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.layer.keys, self.layer.values

    def clone(self) -> CacheLayer:
        twin: CacheLayer = clone_layer(self.layer)
        return twin

    def stored_tensors(self) -> Iterator[StoredTensor]:
        for name, value in vars(self.layer).items():
            for tensor in _tensors(value):
                yield stored_tensor(name if name in ("keys", "values") else "state", tensor)

    def _unsupported_error(self, what: str) -> CacheError:
        return CacheError(what.format(kind=type(self.layer).__name__), tr(REMEDY))


class EmptyLayerAdapter(LayerAdapter[DummyLayer]):
    """Keeps nothing: it reads what another layer keeps, or does not attend."""

    def tokens_read(self) -> int | None:
        return None

    def min_length(self) -> int:
        return 0

    def truncate(self, length: int, total: int) -> None:
        return

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        return


class StateLayerAdapter(LayerAdapter[LinearAttentionCacheLayerMixin]):
    """A state of constant size, alone or beside keys and values. Where it is but the latest inputs (a convolution's)
    and the past is recorded, tokens can be taken back."""

    def tokens_read(self) -> int | None:
        return int(self.layer.get_seq_length()) if isinstance(self.layer, CacheLayerMixin) else None

    def truncate(self, length: int, total: int) -> None:
        if length == total or not self._is_filled:
            return
        if not (self.layer.is_croppable and self.layer.record_past):
            raise CacheError(tr("A recurrent state cannot be taken back."), tr(REMEDY))
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
    """Keeps every token's keys and values."""

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
            index = torch.tensor([base + row for row in rows], device=self.layer.keys.device)
            for tensor in (self.layer.keys, self.layer.values):
                tensor[..., base:stop, :] = tensor.index_select(-2, index)
        self._slice(slice(stop))

    def reorder(self, move: RowMove) -> None:
        """Inside the storage, and only the rows that changed, where their number stays."""
        if not self._is_filled or len(move.rows) != move.before:
            self.layer.reorder_cache(move.index)
            return
        places, sources = move.changes
        for tensor in (self.layer.keys, self.layer.values):
            tensor.index_copy_(0, places.to(tensor.device), tensor.index_select(0, sources.to(tensor.device)))

    def compact(self) -> None:
        if self._is_filled:
            self.layer.keys, self.layer.values = compact_tensor(self.layer.keys), compact_tensor(self.layer.values)

    def _slice(self, tokens: slice) -> None:
        self.layer.keys, self.layer.values = self.layer.keys[..., tokens, :], self.layer.values[..., tokens, :]

    @property
    def _is_filled(self) -> bool:
        return bool(self.layer.is_initialized and self.layer.keys is not None and self.layer.keys.numel())


class PreallocatedLayerAdapter(DynamicLayerAdapter):
    """The same, with room for more perhaps: what is taken back becomes room."""

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
                yield stored_tensor(part, states)

    def _slice(self, tokens: slice) -> None:
        self.layer.shorten(tokens.stop)


class IndexedLayerAdapter(DynamicLayerAdapter):
    """Keeps more than keys and values of every token (an index to find the few worth attending to)."""

    def truncate(self, length: int, total: int) -> None:
        if self._is_filled and self.layer.get_seq_length() > length:
            self.layer.crop(length - self.layer.get_seq_length())

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        if list(rows) != list(range(len(rows))):
            raise self._unsupported_error(tr("A layer of the kind {kind} cannot keep tokens at chosen places."))
        self.truncate(base + len(rows), self.layer.get_seq_length())

    def reorder(self, move: RowMove) -> None:
        self.layer.reorder_cache(move.index)

    def compact(self) -> None:
        for name, value in list(vars(self.layer).items()):
            if isinstance(value, torch.Tensor):
                setattr(self.layer, name, compact_tensor(value))


class WindowLayerAdapter(DynamicLayerAdapter):
    """Keeps what its window still shows, less the present token."""

    def min_length(self) -> int:
        gone = self._dropped
        return gone + int(self.layer.sliding_window) - 1 if gone else 0

    def truncate(self, length: int, total: int) -> None:
        if self._is_filled and length < self.layer.cumulative_length:
            self.keep_rows(length, ())

    def keep_rows(self, base: int, rows: Sequence[int]) -> None:
        """Needs all the tokens that the shorter text's window shows."""
        if not self._is_filled:
            return
        count, gone = base + len(rows), self._dropped
        shown = [*range(base), *(base + row for row in rows)][-(int(self.layer.sliding_window) - 1) :]
        if gone and (base < gone or count < self.min_length()):
            raise window_moved_error(count)
        index = torch.tensor([place - gone for place in shown], dtype=torch.long, device=self.layer.keys.device)
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
    """All room taken at once; storages stay where they are."""

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
        index = torch.tensor([base + row for row in rows], dtype=torch.long, device=self.layer.keys.device)
        for tensor in (self.layer.keys, self.layer.values):
            tensor[:, :, base:stop] = tensor.index_select(2, index)
        self.truncate(stop, int(self.layer.get_seq_length()))


class StaticWindowLayerAdapter(StaticLayerAdapter):
    """Room for its window; once that is full, nothing comes back."""

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
"""Grows by the classes met."""
_ADAPTERS_BY_BASE: tuple[tuple[type, _Adapter], ...] = (
    (DummyLayer, EmptyLayerAdapter),
    (LinearAttentionCacheLayerMixin, StateLayerAdapter),
    (StaticSlidingWindowLayer, StaticWindowLayerAdapter),
    (StaticLayer, StaticLayerAdapter),
    (DynamicSlidingWindowLayer, LayerAdapter),
    (DynamicLayer, IndexedLayerAdapter),
)
"""What a class is first of. What a model has extended keeps more than keys and values: its own `crop` cuts it."""


def adapt_layer(layer: CacheLayer) -> AdaptedLayer:
    """The layer itself where it is one of ours, else its adapter."""
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
