"""A tensor that grows: a text's ids, the states behind its tokens."""

from __future__ import annotations

import torch

_INITIAL_CAPACITY = 256
"""Columns allocated beyond the first ones; room doubles when it is used up."""


class GrowableTensor:
    """Rows [R, T, …] that gain columns in place, without being copied at every step."""

    def __init__(self, start: torch.Tensor) -> None:
        """`start` [R, T, …]: what it begins with; T may be 0."""
        self._length = start.shape[1]
        self._buffer = torch.cat([start, start.new_zeros((start.shape[0], _INITIAL_CAPACITY, *start.shape[2:]))], dim=1)

    def __len__(self) -> int:
        return self._length

    @property
    def tensor(self) -> torch.Tensor:
        """Everything so far, [R, T, …], a view."""
        return self._buffer[:, : self._length]

    @property
    def last(self) -> torch.Tensor:
        """The last column, [R, 1, …], a view."""
        return self._buffer[:, self._length - 1 : self._length]

    def append(self, columns: torch.Tensor) -> None:
        """Add columns [R, n, …]."""
        begin, self._length = self._length, self._length + columns.shape[1]
        while self._length > self._buffer.shape[1]:
            self._buffer = torch.cat([self._buffer, torch.zeros_like(self._buffer)], dim=1)
        self._buffer[:, begin : self._length] = columns


def growable_ids(start: list[int], rows: int, device: torch.device) -> GrowableTensor:
    """`rows` texts that begin with the same ids."""
    return GrowableTensor(torch.tensor([start], dtype=torch.long, device=device).expand(rows, -1))


def argmax(scores: torch.Tensor) -> torch.Tensor:
    """The place of the greatest of each row, the first among equals: int64 [B] of scores [B, V]."""
    return torch.from_numpy(scores.numpy().argmax(-1)) if _is_cpu_float32(scores) else scores.argmax(-1)


def row_max(scores: torch.Tensor) -> list[float]:
    """The greatest of each row of scores [B, V]; NaN where one is no number."""
    found: list[float] = (scores.numpy().max(-1) if _is_cpu_float32(scores) else scores.amax(-1)).tolist()
    return found


def _is_cpu_float32(scores: torch.Tensor) -> bool:
    return scores.is_cpu and scores.dtype is torch.float32 and not scores.requires_grad


def draw_samples(p: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """`count` independent draws from every row of `p` [n, V], which need not sum to one; token ids [n, count].

    `torch.multinomial` makes a random number for every token of the vocabulary; this makes one for every draw. A
    single plain draw costs a seventh of it. Only plain sampling keeps to multinomial, to equal `generate`'s.
    """
    exact = torch.float32 if p.device.type == "mps" else torch.float64
    sums = p.cumsum(-1, dtype=exact)
    places = torch.rand(p.shape[0], count, generator=generator, device=p.device, dtype=exact) * sums[:, -1:]
    return torch.searchsorted(sums, places, right=True).clamp_(max=p.shape[-1] - 1)
