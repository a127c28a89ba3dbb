"""Matrices that stay in the blocks of a GGUF file, and their products with vectors."""

from __future__ import annotations

from typing import Any

import torch

from core.models.gguf.block_formats import BlockFormat, dequantize
from core.native import native_library

_PORTION = 2**17
"""Weights dequantized at a time: their float32 values fit into the CPU cache."""


class BlockMatrix:
    """A matrix [outputs, inputs] of blocks, uint8 [outputs, row bytes], which is neither copied nor written."""

    def __init__(self, blocks: torch.Tensor, fmt: BlockFormat, inputs: int) -> None:
        self.blocks, self.fmt, self.inputs = blocks, fmt, inputs
        self.outputs = len(blocks)

    @property
    def nbytes(self) -> int:
        """Bytes of the blocks."""
        return self.blocks.nbytes

    def multiply(self, vectors: torch.Tensor) -> torch.Tensor:
        """Multiply float32 vectors [M, K]; return float32 [M, N]."""
        found = torch.empty(len(vectors), self.outputs)
        rows = max(1, _PORTION // max(1, self.inputs))
        for start in range(0, self.outputs, rows):
            portion = dequantize(self.blocks[start : start + rows], self.fmt)
            found[:, start : start + rows] = vectors @ portion.t()
        return found

    def rows(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows with the int64 indices `ids` [...] as float32 [..., K]."""
        return dequantize(self.blocks[ids.flatten()], self.fmt).view(*ids.shape, self.inputs)

    def to_struct(self, bias: int | None) -> Any:
        """Return the struct for the native kernel; `bias`: an address, or None."""
        return native_library.MatrixStruct(
            native_library.WEIGHTS[self.fmt.name], self.outputs, self.inputs, self.blocks.data_ptr(), bias
        )
