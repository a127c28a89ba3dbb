"""A layer that grows into room behind its text: tokens to come are written there, and those before them stay."""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import torch
from transformers.cache_utils import DynamicLayer


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
