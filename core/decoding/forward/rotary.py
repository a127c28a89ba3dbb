"""Rotary embeddings of a decoder: cos and signed sin by position, as the decoder's own module computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

AngleFunction = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""cos and sin [1, n, width] of positions [1, n]."""
Rotation = tuple[torch.Tensor, torch.Tensor]
"""cos and signed sin (negated for the first number of each pair), [n, rotated width]."""
_MIN_LENGTH = 512


@dataclass(frozen=True, slots=True, eq=False)
class RotaryTable:
    """cos and signed sin [n, rotated width] of the positions from `first` on. One object means the same numbers."""

    cos: torch.Tensor
    sin: torch.Tensor
    first: int = 0

    def at(self, positions: torch.Tensor | slice) -> Rotation:
        """Return the rows of these positions."""
        if isinstance(positions, slice):
            positions = slice(positions.start - self.first, positions.stop - self.first)
        elif self.first:
            positions = positions - self.first
        return self.cos[positions], self.sin[positions]


class RotaryEmbedding:
    """One rotary embedding, with a table that grows with the positions requested.

    `switch`: length of a pass's text beyond which the angles change; None if they never do. Beyond it they are either
    other fixed ones (longrope), or follow the length of the text and are computed for every pass (`follows_length`,
    dynamic NTK scaling). `max_positions`: number of positions that the module knows, if limited.
    """

    def __init__(
        self, angles: AngleFunction, device: torch.device, switch: int | None = None, follows_length: bool = False,
        max_positions: int | None = None,
    ) -> None:  # fmt: skip
        self._angles, self._device, self._max_positions = angles, device, max_positions
        self._switch, self._follows_length = switch, follows_length
        self._tables: dict[bool, RotaryTable] = {}
        limit = min(limit for limit in (2, switch, max_positions) if limit is not None)
        self.is_adjacent = _is_adjacent(self._compute(limit - 1, limit)[1])
        """Whether each pair of numbers that is rotated are neighbours, instead of half the width apart."""

    @property
    def is_fixed(self) -> bool:
        """Whether the angles of a position never change."""
        return self._switch is None

    def lookup(self, start: int, stop: int) -> RotaryTable:
        """Return a table with the positions from `start` to `stop`, for a pass whose last position is before `stop`.
        Raises IndexError for positions beyond the module's maximum.
        """
        is_beyond = self._switch is not None and stop > self._switch
        if is_beyond and self._follows_length:
            self._compute(0, 1)  # a short text resets the module's record of the longest text
            return RotaryTable(*self._signed(start, stop), start)
        known = self._tables.get(is_beyond)
        if known is None or stop > len(known.cos):
            length = max(_MIN_LENGTH, 2 * stop)
            if self._switch is not None:
                length = max(length, self._switch + 1) if is_beyond else self._switch
            if self._max_positions is not None:
                length = min(length, self._max_positions)
                if stop > length:
                    raise IndexError(f"The model knows {length} positions.")
            if self._follows_length:
                self._compute(0, 1)
            self._tables[is_beyond] = known = RotaryTable(*self._signed(0, length))
        return known

    def _signed(self, start: int, stop: int) -> Rotation:
        cos, sin = self._compute(start, stop)
        sin = sin.clone()
        if self.is_adjacent:
            sin[:, ::2].neg_()
        else:
            sin[:, : sin.shape[-1] // 2].neg_()
        return cos.clone(), sin

    def _compute(self, start: int, stop: int) -> Rotation:
        """Return cos and sin [n, rotated width]."""
        cos, sin = self._angles(torch.arange(start, stop, device=self._device)[None])
        return cos[0], sin[0]


def _is_adjacent(sin: torch.Tensor) -> bool:
    """Return whether neighbours have one angle, judged by the last row."""
    row = sin[-1]
    half = len(row) // 2
    return not torch.equal(row[:half], row[half:]) and torch.equal(row[::2], row[1::2])


def join_pairs(angles: AngleFunction) -> AngleFunction:
    """Convert a function that returns sin and cos of every pair, as GPT-J's module does, into an AngleFunction with a
    number for each of the neighbours.
    """

    def joined(positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sin, cos = angles(positions)
        return cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)

    return joined
