"""Layers that wait on disk and come into memory one ahead of the computation."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers.cache_utils import CacheLayerMixin, DynamicCache

from core.caches.tensors.layer import Layer, Move, Piece, piece
from core.caches.tensors.layouts import full_width
from core.caches.tensors.mapped import MappedTensor
from core.models.model import LoadedModel

_FIRST_ROOM = 256
"""Tokens a growing file has room for at first; then it doubles."""


class DiskLayer(CacheLayerMixin, Layer):
    """Keys and values [B, H, T, D] in two mapped files; a pass gets copies in memory.

    `room`: tokens to allocate for at once, and to count from the start; None for files that grow.
    """

    dtype: Any
    device: Any
    is_sliding = False
    is_croppable = True
    is_lean = True

    def __init__(self, folder: Path, pool: ThreadPoolExecutor, room: int | None) -> None:
        self.folder, self.pool, self.room = folder, pool, room
        self.length = 0
        self.files: tuple[MappedTensor, MappedTensor] | None = None
        self.is_initialized = False
        self._ahead: Future[list[torch.Tensor]] | None = None

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Files for the rows, heads and widths of the given states."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self._allocate(self.room or _FIRST_ROOM, key_states, value_states)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write new tokens [B, H, n, D] behind the others; all of them come back, in memory."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        count, new = key_states.shape[-2], (key_states, value_states)
        self._grow(self.length + count)
        seen = [self._join(old, states) for old, states in zip(self._take(), new, strict=True)] if self.length else new
        for tensor, states in zip(self._tensors(), new, strict=True):
            tensor[:, :, self.length : self.length + count] = states
        self.length += count
        return seen[0], seen[1]

    def prefetch(self) -> None:
        """Begin to bring this layer into memory, on the thread of the pool."""
        if self.length and self._ahead is None:
            self._ahead = self.pool.submit(self._load)

    def offload(self) -> None:
        """Let go of what was brought into memory."""
        self.drop()

    def drop(self) -> None:
        """Forget what was brought into memory."""
        if self._ahead is not None:
            self._ahead.result()
        self._ahead = None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The files change: what was brought in from them is brought in again afterwards."""
        was_ahead = self._ahead is not None
        self.drop()
        yield
        if was_ahead:
            self.prefetch()

    def _take(self) -> list[torch.Tensor]:
        """Copies of keys and values in memory, with room for one token more."""
        loaded = self._ahead.result() if self._ahead is not None else self._load()
        self._ahead = None
        return loaded

    @torch.no_grad()
    def _load(self) -> list[torch.Tensor]:
        copies = []
        for tensor in self._tensors():
            rows, heads, _, width = tensor.shape
            copy = torch.empty(rows, heads, self.length + 1, width, dtype=self.dtype, device=self.device)
            copy[:, :, : self.length] = tensor[:, :, : self.length]
            copies.append(copy)
        return copies

    def _join(self, loaded: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        if states.shape[-2] > 1:
            return torch.cat([loaded[:, :, : self.length], states], dim=-2)
        loaded[:, :, self.length :] = states
        return loaded

    def _tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        assert self.files is not None
        return self.files[0].tensor, self.files[1].tensor

    def _allocate(self, room: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """New files with `room` tokens for the rows, heads and widths of keys and values."""
        sides = [(t.shape[0], t.shape[1], room, t.shape[3]) for t in (keys, values)]
        self.files = (
            MappedTensor(sides[0], self.dtype, self.folder), MappedTensor(sides[1], self.dtype, self.folder),
        )  # fmt: skip

    def _grow(self, tokens: int) -> None:
        old = self._tensors()
        if tokens > old[0].shape[2]:
            self._move(old, max(tokens, 2 * old[0].shape[2]))

    def _move(self, states: tuple[torch.Tensor, torch.Tensor], room: int) -> None:
        """Put the first `length` tokens of `states` into new files."""
        self.drop()
        self._allocate(room, *states)
        for new, old in zip(self._tensors(), states, strict=True):
            new[:, :, : self.length] = old[:, :, : self.length]

    @property
    def keys(self) -> Any:  # type: ignore[override]  # an attribute there
        """All keys, read from the file as they are needed; None when empty."""
        return self._view(0)

    @property
    def values(self) -> Any:  # type: ignore[override]  # as above
        """All values, as `keys`."""
        return self._view(1)

    def _view(self, which: int) -> Any:
        return self._tensors()[which][:, :, : self.length].to(self.device) if self.is_initialized else None

    def get_seq_length(self) -> int:
        """Tokens held."""
        return self.length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(tokens a pass looks at, place of the first)."""
        return self.length + query_length, 0

    def get_max_length(self) -> int:
        """−1: it grows."""
        return -1

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Row i becomes what row `beam_idx[i]` was."""
        if not self.length:
            return
        with self._changing():
            rows, old = beam_idx.to("cpu"), self._tensors()
            chosen = old[0].index_select(0, rows), old[1].index_select(0, rows)
            if chosen[0].shape != old[0].shape:
                self._move(chosen, old[0].shape[2])
                return
            for tensor, states in zip(old, chosen, strict=True):
                tensor.copy_(states)

    def tokens_read(self) -> int:
        """Tokens held."""
        return self.length

    def least(self) -> int:
        """Everything is held."""
        return 0

    def cut(self, length: int, total: int) -> None:
        """Forget all but the first `length` tokens."""
        if length < self.length:
            with self._changing():
                self.length = length

    def keep(self, base: int, rows: Sequence[int]) -> None:
        """Keep these rows behind the first `base` tokens."""
        if not self.is_initialized:
            return
        stop = base + len(rows)
        with self._changing():
            for tensor in self._tensors():
                tensor[:, :, base:stop] = tensor[:, :, [base + row for row in rows]]
            self.length = stop

    def reorder(self, move: Move) -> None:
        """Inside the files where the number of rows stays."""
        self.reorder_cache(move.index)

    def states(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values as they stand."""
        return self.keys, self.values

    def copied(self, pool: ThreadPoolExecutor | None = None) -> DiskLayer:
        """An independent layer with the same content, in files of its own."""
        twin = DiskLayer(self.folder, pool or self.pool, self.room)
        if self.is_initialized:
            twin.length, twin.dtype, twin.device = self.length, self.dtype, self.device
            twin._move(self._tensors(), self._tensors()[0].shape[2])
            twin.is_initialized = True
        return twin

    def stored(self) -> Iterator[Piece]:
        """What is written in the files, and the copies waiting in memory."""
        if not self.is_initialized:
            return
        ahead = self._ahead.result() if self._ahead is not None else []
        for part, tensor in zip(("keys", "values"), self._tensors(), strict=True):
            share = self.length if self.room is None else tensor.shape[2]
            yield Piece("disk", part, tensor, tensor[:, :, :share].numel() * tensor.element_size())
        for part, tensor in zip(("keys", "values"), ahead, strict=False):
            yield piece(part, tensor)


class DiskCache(DynamicCache):
    """A cache of disk layers; while one is computed with, the next is brought in by a thread of its own.

    Without `ahead` nothing is: cross-attention reads its files directly.
    """

    layers: list[Any]

    def __init__(self, layers: list[Any], pool: ThreadPoolExecutor, ahead: bool = True) -> None:
        super().__init__()
        self.layer_class_to_replicate = None
        self.layers, self.ahead = layers, ahead
        weakref.finalize(self, pool.shutdown, wait=True, cancel_futures=True)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """As the layer's, with the next layer on its way meanwhile (after the last one, the first)."""
        following = (layer_idx + 1) % len(self.layers)
        if following and self.ahead:
            self.layers[following].prefetch()
        seen = self.layers[layer_idx].update(key_states, value_states, *args, **kwargs)
        if not following and self.ahead:
            self.layers[0].prefetch()
        return seen[0], seen[1]

    def copied(self) -> DiskCache:
        """An independent cache with the same content."""
        pool = _pool()
        twin = DiskCache([layer.copied(pool) for layer in self.layers], pool, self.ahead)
        if self.ahead:
            twin.layers[0].prefetch()
        return twin


def build_disk(model: LoadedModel, folder: Path, room: int | None, ahead: bool = True) -> DiskCache:
    """An empty cache on disk; windowed layers keep everything too."""
    pool = _pool()
    layers = [DiskLayer(folder, pool, room) for _ in full_width(model).layers]
    return DiskCache(layers, pool, ahead)


def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="cache-prefetch")
