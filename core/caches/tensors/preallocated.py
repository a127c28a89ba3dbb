"""A layer that grows into room behind its text: tokens to come are written there, and those before them stay."""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import torch
from transformers.cache_utils import DynamicLayer


class KeyValueStorage(NamedTuple):
    """Storages of keys and values [B, H, places, D], number behind number, and where they lie."""

    keys: torch.Tensor
    values: torch.Tensor
    keys_at: int
    values_at: int
    places: int

    @staticmethod
    def like(states: torch.Tensor, places: int) -> KeyValueStorage:
        """New ones for as many texts and heads as keys [B, H, T, D] have, filled with nothing."""
        texts, heads, _, width = states.shape
        keys, values = (states.new_empty(texts, heads, places, width) for _ in range(2))
        return KeyValueStorage(keys, values, keys.data_ptr(), values.data_ptr(), places)


class PreallocatedLayer(DynamicLayer):
    """transformers' growing layer, which may have room behind the tokens it holds.

    `keys` and `values` show the tokens and no room; views are made when somebody looks, since a pass that takes its
    room needs none. Who sets them sets all that the layer holds. Until somebody gives it storages with room, it is
    transformers' layer.
    """

    def __init__(self) -> None:
        self._stores: KeyValueStorage | None = None
        self._shown: tuple[torch.Tensor | None, torch.Tensor | None] | None = (None, None)
        self._length = 0
        DynamicLayer.__init__(self)

    @property
    def keys(self) -> torch.Tensor | None:
        """[B, H, T, D]; None before anything was read."""
        return self._views()[0]

    @keys.setter
    def keys(self, states: torch.Tensor | None) -> None:
        self._shown, self._stores = (states, self._views()[1]), None
        self._length = states.shape[-2] if states is not None and states.dim() > 1 else 0

    @property
    def values(self) -> torch.Tensor | None:
        """The same."""
        return self._views()[1]

    @values.setter
    def values(self, states: torch.Tensor | None) -> None:
        self._shown, self._stores = (self._views()[0], states), None

    @property
    def stores(self) -> KeyValueStorage | None:
        """Where its tokens lie, where that may have room."""
        return self._stores

    @property
    def texts(self) -> int:
        """Rows side by side; 0 before anything was read."""
        states = self._stores.keys if self._stores else self._views()[0]
        return len(states) if states is not None and self._length else 0

    def get_seq_length(self) -> int:
        """Tokens held."""
        return self._length

    def take(self, count: int) -> bool:
        """Hold `count` tokens more, which somebody is about to write behind the others, if there is room."""
        if self._stores is None or self._length + count > self._stores.places:
            return False
        self._length += count
        self._shown = None
        return True

    def hold(self, stores: KeyValueStorage, length: int) -> None:
        """Hold the first `length` tokens of other storages."""
        self._stores, self._length, self._shown = stores, length, None

    def shorten(self, length: int) -> None:
        """Forget all but the first `length` tokens, whose places are room again."""
        if length >= self._length:
            return
        if self._stores is not None:
            self._length, self._shown = length, None
            return
        keys, values = self._views()
        assert keys is not None
        assert values is not None
        self.keys, self.values = keys[..., :length, :], values[..., :length, :]

    def crop(self, tokens_to_remove: int) -> None:
        """Forget so many tokens; the number is negative, as transformers counts."""
        if self._stores is None:
            super().crop(tokens_to_remove)
        else:
            self.shorten(self._length - abs(tokens_to_remove))

    def _views(self) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        if self._shown is None:
            assert self._stores is not None
            keys, values = self._stores.keys, self._stores.values
            self._shown = keys[..., : self._length, :], values[..., : self._length, :]
        return self._shown


def grows_plainly(layer: object) -> TypeGuard[DynamicLayer]:
    """Whether a layer holds every token in the order of the text and nothing else: transformers' growing one, or this
    one."""
    return type(layer) in (DynamicLayer, PreallocatedLayer)
