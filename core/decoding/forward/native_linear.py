"""Linear maps of many float32 vectors by the built library, which multiplies them in half the time that torch takes."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence

import torch
from torch.nn import functional as F

from core.native.native_library import NativeLibrary, library
from core.native.structs import WEIGHTS, MatrixStruct

WeightAndBias = tuple[torch.Tensor, torch.Tensor | None]
"""float32 weights [outputs, inputs] and their bias [outputs]."""


_MIN_NATIVE_VECTORS = 16
"""Vectors from which on laying a matrix in panels is worth it."""
_BENCHMARK_SIZE = 512
"""Inputs and outputs of the matrix that is tried: its numbers leave the processor's nearest memory."""
_BENCHMARK_RUNS = 5


def linear(hidden: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`F.linear`, of many vectors by the built library, where that is there and quicker on this processor.

    With one thread, as small models have: torch's other threads stay awake between two products and would stand in the
    way of the library's.
    """
    rows = hidden.numel() // hidden.shape[-1]
    if (
        rows < _MIN_NATIVE_VECTORS
        or torch.get_num_threads() > 1
        or not _is_plain_float32(hidden)
        or not _is_plain_float32(weight)
    ):
        return F.linear(hidden, weight, bias)
    native = library()
    if native is None or not _is_native_faster(native):
        return F.linear(hidden, weight, bias)
    return NativeLinear(native, [(weight, bias)])(hidden.view(rows, -1)).view(*hidden.shape[:-1], -1)


def _is_plain_float32(tensor: torch.Tensor) -> bool:
    """Whether it lies number behind number, and nobody wants to know how it came about."""
    is_float = tensor.dtype is torch.float32 and tensor.device.type == "cpu"
    return is_float and tensor.is_contiguous() and not (tensor.requires_grad and torch.is_grad_enabled())


@functools.cache
def _is_native_faster(native: NativeLibrary) -> bool:
    """Whether it comes to the same in less time than torch's product, which was written for some processors more than
    for others."""
    vectors, weight = torch.rand(4 * _MIN_NATIVE_VECTORS, _BENCHMARK_SIZE), torch.rand(_BENCHMARK_SIZE, _BENCHMARK_SIZE)
    product = NativeLinear(native, [(weight, None)])
    if not torch.allclose(product(vectors), F.linear(vectors, weight), rtol=1e-4):
        return False
    ours, theirs = [], []
    for _ in range(_BENCHMARK_RUNS):
        begun = time.perf_counter()
        product(vectors)
        between = time.perf_counter()
        F.linear(vectors, weight)
        ours.append(between - begun)
        theirs.append(time.perf_counter() - between)
    return min(ours) < min(theirs)


class NativeLinear:
    """Linear maps of one input, their outputs side by side."""

    def __init__(self, native: NativeLibrary, pairs: Sequence[WeightAndBias]) -> None:
        self._library = native
        self._weights = [(weight.contiguous(), bias) for weight, bias in pairs]
        self._matrices = [_matrix(*pair) for pair in self._weights]
        self._outputs = sum(matrix.outputs for matrix in self._matrices)

    def __call__(self, vectors: torch.Tensor) -> torch.Tensor:
        """[n, outputs] of contiguous vectors [n, inputs]."""
        found = vectors.new_empty(len(vectors), self._outputs)
        self._multiply(vectors, found, False)
        return found

    def add_to(self, found: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """`native` [n, outputs], contiguous, which gains the product."""
        self._multiply(vectors, found, True)
        return found

    def _multiply(self, vectors: torch.Tensor, found: torch.Tensor, adds: bool) -> None:
        place = found.data_ptr()
        for matrix in self._matrices:
            self._library.matmul(
                matrix, vectors.data_ptr(), len(vectors), place, self._outputs, adds, torch.get_num_threads()
            )
            place += matrix.outputs * found.element_size()


class NativeGatedMlp:
    """silu(gate) · up of two linear maps of one input."""

    def __init__(self, native: NativeLibrary, gate: torch.Tensor, up: torch.Tensor) -> None:
        self._library, self._weights = native, (gate.contiguous(), up.contiguous())
        self._gate, self._up = map(_matrix, self._weights)

    def __call__(self, vectors: torch.Tensor) -> torch.Tensor:
        """[n, outputs of one] of contiguous vectors [n, inputs]."""
        found = vectors.new_empty(len(vectors), self._gate.outputs)
        threads = torch.get_num_threads()
        self._library.gated_matmul(self._gate, self._up, vectors.data_ptr(), len(vectors), found.data_ptr(), threads)
        return found


def _matrix(weight: torch.Tensor, bias: torch.Tensor | None = None) -> MatrixStruct:
    outputs, inputs = weight.shape
    return MatrixStruct(
        WEIGHTS["float32"], outputs, inputs, weight.data_ptr(), None if bias is None else bias.data_ptr()
    )
