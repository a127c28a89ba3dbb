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
