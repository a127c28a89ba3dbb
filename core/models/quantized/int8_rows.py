"""Matrices of eight-bit numbers as they are, row behind row, multiplied by the quick step where it is built.

A single text's products read every weight once, so they take as long as the memory does; blocks, as oneDNN wants them,
are worth their making only for long prompts, and are made for each of those.
"""

from __future__ import annotations

from typing import Any

import torch

from core.models.quantized.int8 import BlockedInt8Matmul, FloatInt8Matmul, Int8Matrix, has_fast_onednn
from core.models.quantized.page_buffers import allocate_pages
from core.native import structs
from core.native.native_library import NativeLibrary

_MAX_ROWWISE = 32
"""Vectors that are multiplied row by row in any case."""
_COLUMN_PORTION = 512
"""Columns of a blocked matrix that are read at a time."""


class Int8RowMatrix:
    """int8 [N, K] and float32 scales [N]."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor, library: NativeLibrary) -> None:
        self._numbers, self._scales, self._library = numbers.contiguous(), scales, library
        self._sums = self._numbers.sum(1, dtype=torch.int32) * library.vector_offset if library.vector_offset else None
        """What the shift of the kernel's vectors adds to their products."""

    @property
    def nbytes(self) -> int:
        """One byte a weight, and for each row a scale of four, and a sum of four where the kernel wants one."""
        return self._numbers.numel() + (4 if self._sums is None else 8) * len(self._scales)

    def to_struct(self, bias: int | None) -> Any:
        """As the quick step reads it; `bias`: an address, or None."""
        return structs.MatrixStruct(
            structs.WEIGHTS["int8"], *self._numbers.shape, self._numbers.data_ptr(), bias,
            self._scales.data_ptr(), None if self._sums is None else self._sums.data_ptr(),
        )  # fmt: skip

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """float32 [M, N]."""
        rows = len(steps)
        if rows > _MAX_ROWWISE and has_fast_onednn():
            return BlockedInt8Matmul(self._numbers, self._scales).multiply_split(halves, steps)
        halves, found = halves.contiguous(), torch.empty(rows, len(self._scales))
        self._library.multiply(
            self.to_struct(None), halves.data_ptr(), steps.contiguous().data_ptr(), rows, found.data_ptr(),
            torch.get_num_threads(),
        )  # fmt: skip
        return found


def to_int8_rows(matrix: Int8Matrix, inputs: int, library: NativeLibrary) -> Int8RowMatrix:
    """The same numbers row behind row: what a blocked matrix gives for unit vectors is what it holds."""
    if isinstance(matrix, Int8RowMatrix):
        return matrix
    if isinstance(matrix, FloatInt8Matmul):
        return Int8RowMatrix(matrix.numbers, matrix.scales, library)
    assert isinstance(matrix, BlockedInt8Matmul)
    numbers = allocate_pages((len(matrix.scales), inputs), torch.int8)
    for start in range(0, inputs, _COLUMN_PORTION):
        count = min(_COLUMN_PORTION, inputs - start)
        numbers[:, start : start + count] = matrix.columns(start, count, inputs).t()
    return Int8RowMatrix(numbers, matrix.scales, library)
