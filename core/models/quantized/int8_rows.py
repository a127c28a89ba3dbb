"""Matrices of eight-bit numbers as they are, row behind row, multiplied by the quick step where it is built.

A single text's products read every weight once, so they take as long as the memory does; blocks, as oneDNN wants them,
are worth their making only for long prompts, and are made for each of those.
"""

from __future__ import annotations

from typing import Any

import torch

from core.models.quantized.int8 import BlockedInt8Matmul, FloatInt8Matmul, Int8Matrix, has_blocks
from core.models.quantized.page_buffers import paged
from core.native import structs
from core.native.native_library import NativeLibrary

_FEW = 32
"""Vectors that are multiplied row by row in any case."""
_PORTION = 512
"""Columns of a blocked matrix that are read at a time."""


class Int8Rows:
    """int8 [N, K] and float32 scales [N]."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor, library: NativeLibrary) -> None:
        self._numbers, self._scales, self._library = numbers.contiguous(), scales, library
        self._sums = self._numbers.sum(1, dtype=torch.int32) * library.shift if library.shift else None
        """What the shift of the kernel's vectors adds to their products."""

    @property
    def nbytes(self) -> int:
        """One byte a weight, and for each row a scale of four, and a sum of four where the kernel wants one."""
        return self._numbers.numel() + (4 if self._sums is None else 8) * len(self._scales)

    def described(self, bias: int | None) -> Any:
        """As the quick step reads it; `bias`: an address, or None."""
        return structs.MatrixStruct(
            structs.WEIGHTS["int8"], *self._numbers.shape, self._numbers.data_ptr(), bias,
            self._scales.data_ptr(), None if self._sums is None else self._sums.data_ptr(),
        )  # fmt: skip

    def of_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """float32 [M, N]."""
        rows = len(steps)
        if rows > _FEW and has_blocks():
            return BlockedInt8Matmul(self._numbers, self._scales).of_split(halves, steps)
        halves, found = halves.contiguous(), torch.empty(rows, len(self._scales))
        self._library.multiply(
            self.described(None), halves.data_ptr(), steps.contiguous().data_ptr(), rows, found.data_ptr(),
            torch.get_num_threads(),
        )  # fmt: skip
        return found


def in_rows(matrix: Int8Matrix, inputs: int, library: NativeLibrary) -> Int8Rows:
    """The same numbers row behind row: what a blocked matrix gives for unit vectors is what it holds."""
    if isinstance(matrix, Int8Rows):
        return matrix
    if isinstance(matrix, FloatInt8Matmul):
        return Int8Rows(matrix.numbers, matrix.scales, library)
    assert isinstance(matrix, BlockedInt8Matmul)
    numbers = paged((len(matrix.scales), inputs), torch.int8)
    for start in range(0, inputs, _PORTION):
        count = min(_PORTION, inputs - start)
        numbers[:, start : start + count] = matrix.columns(start, count, inputs).t()
    return Int8Rows(numbers, matrix.scales, library)
