"""Matrices of four-bit numbers row behind row, multiplied by the quick step where it is built.

The same numbers as torch's kernel has, which reads them in an order of its own and takes vectors in bfloat16; here
vectors are split as for eight bits (`eight.split`), so that a row does not depend on those beside it.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from core.models.quantized.int4 import GROUP, PACKED_OUTPUTS, Int4Matrix
from core.models.quantized.int8 import split_vectors
from core.models.quantized.page_buffers import allocate_pages
from core.native import structs
from core.native.native_library import NativeLibrary


class Int4RowMatrix:
    """Packed weights [N, K], as `core/native/source/fours.h` has them."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor, library: NativeLibrary) -> None:
        """uint8 [N, K / 2]; bfloat16 [N, 2, K / 32], a row's scales before its offsets."""
        self._numbers, self._scales, self._library = numbers, scales, library

    @property
    def nbytes(self) -> int:
        """Half a byte a weight, and four bytes for each group."""
        return self._numbers.nbytes + self._scales.nbytes

    def to_struct(self, bias: int | None) -> Any:
        """As the quick step reads it; `bias`: an address, or None."""
        outputs, half = self._numbers.shape
        return structs.MatrixStruct(
            structs.WEIGHTS["int4"], outputs, 2 * half, self._numbers.data_ptr(), bias, self._scales.data_ptr()
        )

    def multiply(self, vectors: torch.Tensor) -> torch.Tensor:
        """float32 [M, N] of [M, K]."""
        return self.multiply_split(*split_vectors(vectors.float()))

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """float32 [M, N] of vectors that `split_vectors` gave."""
        halves, found = halves.contiguous(), torch.empty(len(steps), len(self._numbers))
        self._library.multiply(
            self.to_struct(None), halves.data_ptr(), steps.contiguous().data_ptr(), len(steps), found.data_ptr(),
            torch.get_num_threads(),
        )  # fmt: skip
        return found


def to_int4_rows(matrix: Int4Matrix | Int4RowMatrix, library: NativeLibrary) -> Int4RowMatrix:
    """The same numbers row behind row."""
    if isinstance(matrix, Int4RowMatrix):
        return matrix
    packed, beside = matrix.tensors
    outputs, inputs = packed.shape[0], GROUP * beside.shape[0]
    numbers = allocate_pages((outputs, inputs // 2), torch.uint8)
    for start in range(0, outputs, PACKED_OUTPUTS):
        part = packed[start : start + PACKED_OUTPUTS]
        numbers[start : start + PACKED_OUTPUTS] = _pack_groups(
            _split_nibbles(part)[_packed_positions(len(part), inputs)]
        )
    return Int4RowMatrix(numbers, beside.permute(1, 2, 0).contiguous(), library)


def _split_nibbles(packed: torch.Tensor) -> torch.Tensor:
    """uint8 [2 · n]: the lower and the upper half of every byte."""
    return torch.stack([packed & 15, packed >> 4], -1).flatten()


def _pack_groups(numbers: torch.Tensor) -> torch.Tensor:
    """uint8 [n, K / 2] of [n, K]: two groups in 32 bytes, one that is left over in 16."""
    paired = numbers.shape[1] // (2 * GROUP) * 2 * GROUP
    first, second = numbers[:, :paired].reshape(len(numbers), -1, 2, GROUP).unbind(2)
    rest = numbers[:, paired:]
    left, right = rest[:, : GROUP // 2], rest[:, GROUP // 2 :]
    return torch.cat([(first | second << 4).flatten(1), left | right << 4], 1)


@functools.lru_cache(maxsize=8)
def _packed_positions(outputs: int, inputs: int) -> torch.Tensor:
    """int64 [outputs, inputs]: where torch puts each number, which differs between processors: found by having it pack
    each number's own place, a digit at a time."""
    own = torch.arange(outputs * inputs).view(outputs, inputs)
    found, factor = torch.zeros(outputs * inputs, dtype=torch.int64), 1
    while factor < own.numel():
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu((own // factor % 16).to(torch.int32), 1)
        found += _split_nibbles(packed).long() * factor
        factor *= 16
    return found.argsort().view(outputs, inputs)
