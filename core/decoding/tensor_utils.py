"""A growable tensor, for token ids or hidden states."""

from __future__ import annotations

import torch

_INITIAL_CAPACITY = 256
"""Columns allocated beyond the initial ones; the capacity doubles when it is used up."""


class GrowableTensor:
    """Rows [R, T, …] that gain columns in place, without a copy at every step."""

    def __init__(self, start: torch.Tensor) -> None:
        """Start with `start` [R, T, …]; T may be 0."""
        self._length = start.shape[1]
        self._buffer = torch.cat([start, start.new_zeros((start.shape[0], _INITIAL_CAPACITY, *start.shape[2:]))], dim=1)

    def __len__(self) -> int:
        return self._length

    @property
    def tensor(self) -> torch.Tensor:
        """Everything so far, [R, T, …], as a view."""
        return self._buffer[:, : self._length]

    @property
    def last(self) -> torch.Tensor:
        """The last column, [R, 1, …], as a view."""
        return self._buffer[:, self._length - 1 : self._length]

    def append(self, columns: torch.Tensor) -> None:
        """Append columns [R, n, …]."""
        begin, self._length = self._length, self._length + columns.shape[1]
        while self._length > self._buffer.shape[1]:
            self._buffer = torch.cat([self._buffer, torch.zeros_like(self._buffer)], dim=1)
        self._buffer[:, begin : self._length] = columns


def growable_ids(start: list[int], rows: int, device: torch.device) -> GrowableTensor:
    """Return `rows` texts that begin with the same ids."""
    return GrowableTensor(torch.tensor([start], dtype=torch.long, device=device).expand(rows, -1))


def argmax(scores: torch.Tensor) -> torch.Tensor:
    """Return the index of the maximum of each row, the first among equals: int64 [B] of scores [B, V]."""
    return torch.from_numpy(scores.numpy().argmax(-1)) if _is_cpu_float32(scores) else scores.argmax(-1)


def row_max(scores: torch.Tensor) -> list[float]:
    """Return the maximum of each row of scores [B, V]; NaN where a row contains NaN."""
    found: list[float] = (scores.numpy().max(-1) if _is_cpu_float32(scores) else scores.amax(-1)).tolist()
    return found


def _is_cpu_float32(scores: torch.Tensor) -> bool:
    return scores.is_cpu and scores.dtype is torch.float32 and not scores.requires_grad


def draw_one(p: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Draw one token from every row of `p` [n, V]; return ids [n].

    `torch.multinomial` draws as below. On a GPU it also checks its argument, with a dozen launches, and an assertion
    that fails makes the device unusable. Here NaN gives any token, and the caller checks the scores.
    """
    if p.device.type == "cpu":
        return torch.multinomial(p, 1, generator=generator).squeeze(1)
    return p.div(torch.empty_like(p).exponential_(1, generator=generator)).argmax(-1)


def to_host(ids: torch.Tensor, values: torch.Tensor) -> tuple[list[list[int]], list[list[float]]]:
    """Return token ids and their values, both [n, k], as lists; from a GPU in one transfer."""
    if ids.device.type == "cpu":
        return ids.tolist(), values.tolist()
    numbers, figures = torch.stack([ids.to(values.dtype), values]).tolist()
    return [[int(number) for number in row] for row in numbers], figures


def widest_float(device: torch.device) -> torch.dtype:
    """Return the most exact dtype of a device for sums: MPS has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def draw_samples(p: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Draw `count` independent samples from every row of `p` [n, V], which need not sum to one; return token ids [n,
    count].

    `torch.multinomial` generates a random number per vocabulary entry, this function one per sample, at a seventh of
    the cost. Only plain sampling uses multinomial, to match `generate`.
    """
    exact = widest_float(p.device)
    sums = p.cumsum(-1, dtype=exact)
    places = torch.rand(p.shape[0], count, generator=generator, device=p.device, dtype=exact) * sums[:, -1:]
    return torch.searchsorted(sums, places, right=True).clamp_(max=p.shape[-1] - 1)
