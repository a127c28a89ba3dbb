"""Matrices that stay in the blocks of a GGUF file, and their products with vectors.

With the native library the vectors are quantized to 8 bits, as in llama.cpp: blocks of 32 numbers x share a step of
max |x| / 127, and a number is off by at most half a step. Products of 32 codes are summed exactly in integers. A
product of a row w and a vector x is therefore off by at most

    sum over blocks of (sum |w|) · (max |x|) / 254

plus rounding of 2⁻²² · sum |w · x|; typical errors are 0.5 % of the standard deviation of the products. The products of
a vector do not depend on the other vectors, to the last bit. F32, F16 and BF16 matrices are multiplied by the float32
vectors themselves.
"""

from __future__ import annotations

from typing import Any

import torch

from decodescope.core.models.gguf.block_formats import NATIVE, dequantize
from decodescope.core.models.gguf.gguf_file import BlockFormat
from decodescope.core.native import native_library
from decodescope.core.native.native_library import NativeLibrary
from decodescope.core.native.tensor_address import tensor_address

_PORTION = 2**20
"""Weights dequantized at a time: 4 MiB of float32 values, few enough for the CPU cache and enough for fast products."""
_MAX_FLOAT_VECTORS = 16
"""Vectors up to which the native kernels multiply float formats; torch is faster for more, and rounds differently."""


class BlockMatrix:
    """A matrix [outputs, inputs] of blocks, uint8 [outputs, row bytes], which is neither copied nor written.

    The blocks may be a view of a read-only memory-mapped file, at any address. Raises ValueError if the shape does not
    fit the format.
    """

    def __init__(self, blocks: torch.Tensor, fmt: BlockFormat, inputs: int) -> None:
        if inputs % fmt.block_weights or blocks.dtype != torch.uint8 or blocks.shape[1:] != (fmt.row_bytes(inputs),):
            raise ValueError(f"Blocks {tuple(blocks.shape)} do not hold rows of {inputs} weights in {fmt.name}.")
        self.blocks, self.fmt, self.inputs = blocks, fmt, inputs
        self.outputs = len(blocks)

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks."""
        return self.blocks.nbytes

    def multiply(self, vectors: torch.Tensor) -> torch.Tensor:
        """Multiply float32 vectors [M, K]; return float32 [M, N]."""
        library = self._native_library()
        if library is None or (self.fmt.block_weights == 1 and len(vectors) > _MAX_FLOAT_VECTORS):
            return self._multiply_portions(vectors)
        vectors, rows = vectors.contiguous(), len(vectors)
        found = torch.empty(rows, self.outputs, dtype=torch.float32, device="cpu")
        library.multiply_blocks(
            self.to_struct(None), tensor_address(vectors, torch.float32, rows * self.inputs), rows,
            tensor_address(found, torch.float32), torch.get_num_threads(),
        )  # fmt: skip
        return found

    def _multiply_portions(self, vectors: torch.Tensor) -> torch.Tensor:
        """Multiply by dequantized rows, a portion at a time."""
        found = torch.empty(len(vectors), self.outputs, dtype=torch.float32, device=vectors.device)
        rows = max(1, _PORTION // max(1, self.inputs))
        for start in range(0, self.outputs, rows):
            portion = dequantize(self.blocks[start : start + rows], self.fmt)
            found[:, start : start + rows] = vectors @ portion.t()
        return found

    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows with the int64 indices `ids` [...] as float32 [..., K]. Raises IndexError."""
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self.outputs:
            raise IndexError(f"A row index is not between 0 and {self.outputs - 1}.")
        library = self._native_library()
        if library is None:
            return dequantize(self.blocks[ids.flatten()], self.fmt).view(*ids.shape, self.inputs)
        ids, found = ids.contiguous(), torch.empty(*ids.shape, self.inputs, dtype=torch.float32, device="cpu")
        library.matrix_rows(
            self.to_struct(None), tensor_address(ids, torch.int64), ids.numel(), tensor_address(found, torch.float32)
        )
        return found

    def to_struct(self, bias: int | None) -> Any:
        """Return the struct for the native kernel; `bias`: an address, or None. The format must be in NATIVE."""
        return native_library.MatrixStruct(
            native_library.WEIGHTS[self.fmt.name],
            self.outputs,
            self.inputs,
            tensor_address(self.blocks, torch.uint8),
            bias,
        )

    def _native_library(self) -> NativeLibrary | None:
        """Return the native library if it can read these blocks."""
        return native_library.library() if self.fmt.name in NATIVE and self.blocks.is_contiguous() else None
