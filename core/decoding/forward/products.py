"""Linear maps of many float32 vectors by the built library, which multiplies them in half the time that torch takes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core.native.description import WEIGHTS, Matrix
from core.native.library import Library

Pair = tuple[torch.Tensor, torch.Tensor | None]
"""float32 weights [outputs, inputs] and their bias [outputs]."""


class Product:
    """Linear maps of one input, their outputs side by side."""

    def __init__(self, found: Library, pairs: Sequence[Pair]) -> None:
        self._library = found
        self._kept = [(weight.contiguous(), bias) for weight, bias in pairs]
        self._matrices = [_matrix(*pair) for pair in self._kept]
        self._outputs = sum(matrix.outputs for matrix in self._matrices)

    def __call__(self, vectors: torch.Tensor) -> torch.Tensor:
        """[n, outputs] of contiguous vectors [n, inputs]."""
        found = vectors.new_empty(len(vectors), self._outputs)
        self._take(vectors, found, False)
        return found

    def add_to(self, found: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """`found` [n, outputs], contiguous, which gains the product."""
        self._take(vectors, found, True)
        return found

    def _take(self, vectors: torch.Tensor, found: torch.Tensor, adds: bool) -> None:
        place = found.data_ptr()
        for matrix in self._matrices:
            self._library.product(
                matrix, vectors.data_ptr(), len(vectors), place, self._outputs, adds, torch.get_num_threads()
            )
            place += matrix.outputs * found.element_size()


class GatedProduct:
    """silu(gate) · up of two linear maps of one input."""

    def __init__(self, found: Library, gate: torch.Tensor, up: torch.Tensor) -> None:
        self._library, self._kept = found, (gate.contiguous(), up.contiguous())
        self._gate, self._up = map(_matrix, self._kept)

    def __call__(self, vectors: torch.Tensor) -> torch.Tensor:
        """[n, outputs of one] of contiguous vectors [n, inputs]."""
        found = vectors.new_empty(len(vectors), self._gate.outputs)
        threads = torch.get_num_threads()
        self._library.gated(self._gate, self._up, vectors.data_ptr(), len(vectors), found.data_ptr(), threads)
        return found


def _matrix(weight: torch.Tensor, bias: torch.Tensor | None = None) -> Matrix:
    outputs, inputs = weight.shape
    return Matrix(WEIGHTS["float32"], outputs, inputs, weight.data_ptr(), None if bias is None else bias.data_ptr())
