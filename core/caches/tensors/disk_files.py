"""The two mapped files of a layer on disk, and the copies of them that wait in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import torch

from core.caches.tensors.memory_mapped import MappedTensor
from core.caches.tensors.prefetching import Submitter

KeyValuePair = tuple[torch.Tensor, torch.Tensor]
"""Keys and values [B, H, T, D]."""

_INITIAL_CAPACITY = 256
"""Tokens a growing file has room for at first; then it doubles."""


class DiskFiles:
    """Keys and values [B, H, T, D] in two mapped files, the first `length` tokens of which are written.

    `capacity`: tokens to allocate for at once; None for files that grow. What allocates raises CacheError when the disk
    has no room.
    """

    def __init__(self, folder: Path, pool: Submitter, capacity: int | None) -> None:
        self.folder, self.pool, self.capacity = folder, pool, capacity
        self.length = 0
        self._mapped: tuple[MappedTensor, MappedTensor] | None = None
        self._device = torch.device("cpu")
        self._prefetched: Future[list[torch.Tensor]] | None = None

    def open(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Make the files for the rows, heads, widths and precisions of the given states; copies go to their device."""
        self._device = keys.device
        self._allocate(self.capacity or _INITIAL_CAPACITY, keys, values)

    @property
    def tensors(self) -> KeyValuePair:
        """Keys and values with all the room there is, on disk."""
        assert self._mapped is not None
        return self._mapped[0].tensor, self._mapped[1].tensor

    def read(self, which: int) -> torch.Tensor:
        """What is written of the keys (0) or the values (1), read as it is needed."""
        return self.tensors[which][:, :, : self.length].to(self._device)

    def append(self, new: KeyValuePair) -> KeyValuePair:
        """Write new tokens [B, H, n, D] behind the others; all of them come back, in memory."""
        count = new[0].shape[-2]
        self._ensure_capacity(self.length + count)
        seen = new
        if self.length:
            keys, values = self._loaded_copies()
            seen = self._join(keys, new[0]), self._join(values, new[1])
        for tensor, states in zip(self.tensors, new, strict=True):
            tensor[:, :, self.length : self.length + count] = states
        self.length += count
        return seen

    def reorder(self, rows: torch.Tensor) -> None:
        """Row i becomes what row `rows[i]` was; in place where the number of rows stays."""
        with self._paused_prefetch():
            old = self.tensors
            chosen = old[0].index_select(0, rows), old[1].index_select(0, rows)
            if chosen[0].shape != old[0].shape:
                self._rewrite(chosen, old[0].shape[2])
                return
            for tensor, states in zip(old, chosen, strict=True):
                tensor.copy_(states)

    def truncate(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        with self._paused_prefetch():
            self.length = length

    def keep_positions(self, base: int, positions: Sequence[int]) -> None:
        """Keep these places of the text behind the first `base` tokens."""
        stop = base + len(positions)
        with self._paused_prefetch():
            for tensor in self.tensors:
                tensor[:, :, base:stop] = tensor[:, :, list(positions)]
            self.length = stop

    def clone(self, pool: Submitter) -> DiskFiles:
        """Other files with the same content, brought in by `pool`."""
        twin = DiskFiles(self.folder, pool, self.capacity)
        if self._mapped is not None:
            twin.length, twin._device = self.length, self._device
            twin._rewrite(self.tensors, self.tensors[0].shape[2])
        return twin

    # Copies in memory

    def prefetch(self) -> None:
        """Begin to bring what is written into memory, on the thread of the pool."""
        if self.length and self._prefetched is None:
            self._prefetched = self.pool.submit(self._load)

    def release_copies(self) -> None:
        """Forget what was brought into memory."""
        if self._prefetched is not None:
            self._prefetched.result()
        self._prefetched = None

    def prefetched(self) -> Sequence[torch.Tensor]:
        """The copies of keys and values that wait in memory; none where nothing was brought in."""
        return self._prefetched.result() if self._prefetched is not None else ()

    @contextmanager
    def _paused_prefetch(self) -> Iterator[None]:
        """The files change: what was brought in from them is brought in again afterwards."""
        was_ahead = self._prefetched is not None
        self.release_copies()
        yield
        if was_ahead:
            self.prefetch()

    def _loaded_copies(self) -> Sequence[torch.Tensor]:
        """Copies of keys and values in memory, with room for one token more."""
        loaded = self.prefetched() or self._load()
        self._prefetched = None
        return loaded

    @torch.no_grad()
    def _load(self) -> list[torch.Tensor]:
        copies = []
        for tensor in self.tensors:
            rows, heads, _, width = tensor.shape
            copy = torch.empty(rows, heads, self.length + 1, width, dtype=tensor.dtype, device=self._device)
            copy[:, :, : self.length] = tensor[:, :, : self.length]
            copies.append(copy)
        return copies

    def _join(self, loaded: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        if states.shape[-2] > 1:
            return torch.cat([loaded[:, :, : self.length], states], dim=-2)
        loaded[:, :, self.length :] = states
        return loaded

    # Room on disk

    def _allocate(self, capacity: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """New files with `capacity` tokens for the rows, heads and widths of keys and values."""
        sides = [(t.shape[0], t.shape[1], capacity, t.shape[3]) for t in (keys, values)]
        self._mapped = (
            MappedTensor(sides[0], keys.dtype, self.folder), MappedTensor(sides[1], values.dtype, self.folder),
        )  # fmt: skip

    def _ensure_capacity(self, tokens: int) -> None:
        old = self.tensors
        if tokens > old[0].shape[2]:
            self._rewrite(old, max(tokens, 2 * old[0].shape[2]))

    def _rewrite(self, states: KeyValuePair, capacity: int) -> None:
        """Put the first `length` tokens of `states` into new files."""
        self.release_copies()
        self._allocate(capacity, *states)
        for new, old in zip(self.tensors, states, strict=True):
            new[:, :, : self.length] = old[:, :, : self.length]
