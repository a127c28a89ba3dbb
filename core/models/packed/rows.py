"""Matrices of eight-bit numbers as they are, row behind row, multiplied by the quick step where it is built.

A single text's products read every weight once, so they take as long as the memory does; blocks, as oneDNN wants them,
are worth their making only for long prompts, and are made for each of those.
"""

from __future__ import annotations

from typing import Any

import torch

from core.models.packed.eight import Blocked, Matrix, Plain, has_blocks
from core.models.packed.pages import paged
from core.native import description
from core.native.library import Library

_FEW = 32
"""Vectors that are multiplied row by row in any case."""
_PORTION = 512
"""Columns of a blocked matrix that are read at a time."""


class Rows:
    """int8 [N, K] and float32 scales [N]."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor, library: Library) -> None:
        self._numbers, self._scales, self._library = numbers.contiguous(), scales, library
        self._sums = self._numbers.sum(1, dtype=torch.int32) * library.shift if library.shift else None
        """What the shift of the kernel's vectors adds to their products."""

    @property
    def nbytes(self) -> int:
        """One byte a weight, and for each row a scale of four, and a sum of four where the kernel wants one."""
        return self._numbers.numel() + (4 if self._sums is None else 8) * len(self._scales)

    def described(self, bias: int | None) -> Any:
        """As the quick step reads it; `bias`: an address, or None."""
        return description.Matrix(
            description.WEIGHTS["int8"], *self._numbers.shape, self._numbers.data_ptr(), bias,
            self._scales.data_ptr(), None if self._sums is None else self._sums.data_ptr(),
        )  # fmt: skip

    def of_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """float32 [M, N]."""
        rows = len(steps)
        if rows > _FEW and has_blocks():
            return Blocked(self._numbers, self._scales).of_split(halves, steps)
        halves, found = halves.contiguous(), torch.empty(rows, len(self._scales))
        self._library.multiply(
            self.described(None), halves.data_ptr(), steps.contiguous().data_ptr(), rows, found.data_ptr(),
            torch.get_num_threads(),
        )  # fmt: skip
        return found


def in_rows(matrix: Matrix, inputs: int, library: Library) -> Rows:
    """The same numbers row behind row: what a blocked matrix gives for unit vectors is what it holds."""
    if isinstance(matrix, Rows):
        return matrix
    if isinstance(matrix, Plain):
        return Rows(matrix.numbers, matrix.scales, library)
    assert isinstance(matrix, Blocked)
    numbers = paged((len(matrix.scales), inputs), torch.int8)
    for start in range(0, inputs, _PORTION):
        count = min(_PORTION, inputs - start)
        numbers[:, start : start + count] = matrix.columns(start, count, inputs).t()
    return Rows(numbers, matrix.scales, library)
