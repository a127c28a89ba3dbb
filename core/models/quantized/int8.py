"""Matrices of eight-bit numbers, and their product with a text's vectors.

Each output row of a weight matrix is divided by its largest magnitude and rounded to −127 … 127 (absmax, symmetric, one
scale a row: Dettmers et al. 2022, "LLM.int8()", https://arxiv.org/abs/2208.07339). The vectors are split into two such
numbers each, a coarse one and what is left of it, so that they keep about fifteen bits; eight alone would lose much
where single features are large, as that paper shows. Sums of products of eight-bit numbers are whole numbers below 2³¹
and therefore exact: a row's result does not depend on the rows beside it, so that a draft checked at once gives what
single steps give.
"""

from __future__ import annotations

import functools
import time
from typing import Protocol

import torch

from core.models.quantized.page_buffers import allocate_pages

_LEVELS = 127
_FINE_LEVELS = 254
"""Levels of the second number within one step of the first: it reaches half a step to either side."""
_TINY = 1e-30
_EXACT_PRODUCTS = 1024
"""Products of 127 and 127 whose sum is below 2²⁴, up to which float32 holds every whole number."""
_FLOAT_PORTION = 2**17
"""Weights that are turned into floats at a time: as many as stay in a cache."""
_PROBE = 64
_SHAPE = (512, 256)
"""Outputs and inputs of a matrix whose products are timed."""
_MAX_SECONDS = 1e-3
"""Seconds that it takes at most, far above what a kernel should: oneDNN's reference took 10 to 20 ms."""


def quantize_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 [n, K] and float32 scales [n] whose product is near `rows` [n, K]: by half a scale at most."""
    shape = tuple(rows.shape)
    exact = allocate_pages(shape, torch.float32).copy_(rows)
    scales = torch.linalg.vector_norm(exact, torch.inf, -1).div_(_LEVELS).clamp_(min=_TINY)
    return allocate_pages(shape, torch.int8).copy_(exact.div_(scales[:, None]).round_()), scales


def split_vectors(vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 [2 · M, K], coarse numbers before fine ones, and float32 sizes [M, 1] of one coarse step, of [M, K]."""
    steps = torch.linalg.vector_norm(vectors, torch.inf, -1, keepdim=True).div_(_LEVELS).clamp_(min=_TINY)
    fine = vectors / steps
    coarse = fine.round()
    fine.sub_(coarse).mul_(_FINE_LEVELS).round_()
    return torch.cat([coarse, fine]).to(torch.int8), steps


class Int8Matrix(Protocol):
    """Packed weights [N, K]."""

    @property
    def nbytes(self) -> int:
        """Bytes of the packed numbers and of what is kept beside them."""

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """float32 [M, N] of vectors that `split_vectors` gave."""


class BlockedInt8Matmul:
    """Packed by oneDNN in blocks that suit this processor; products of whole numbers by its own kernels."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        self.scales = scales
        self._zeros = torch.zeros(len(scales), dtype=torch.int32)
        self._packed: torch.Tensor = torch.ops.onednn.qlinear_prepack(numbers, None)

    @property
    def nbytes(self) -> int:
        """One byte a weight, and a scale and a zero point of four for each row."""
        return self._packed.numel() + 8 * len(self.scales)

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """float32 [M, N]."""
        both = torch.ops.onednn.qlinear_pointwise(
            halves, 1.0, 0, self._packed, torch.ones_like(self.scales), self._zeros, None, 1.0, 0, torch.float32,
            "none", [], "",
        )  # fmt: skip
        return _combine_halves(both, self.scales, steps)

    def columns(self, start: int, count: int, inputs: int) -> torch.Tensor:
        """int8 [count, N]: the numbers themselves, of `count` of the `inputs` columns."""
        units = torch.zeros(count, inputs, dtype=torch.int8)
        units[range(count), range(start, start + count)] = 1
        exact: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
            units, 1.0, 0, self._packed, torch.ones_like(self.scales), self._zeros, None, 1.0, 0, torch.float32,
            "none", [], "",
        )  # fmt: skip
        return exact.to(torch.int8)


class FloatInt8Matmul:
    """Whole numbers as they are, multiplied as floats a portion at a time. Slower; the same results."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        self.numbers, self.scales = numbers, scales

    @property
    def nbytes(self) -> int:
        """One byte a weight, and a scale of four for each row."""
        return self.numbers.numel() + 4 * len(self.scales)

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """float32 [M, N]."""
        return _combine_halves(_integer_products(halves, self.numbers), self.scales, steps)


def _combine_halves(both: torch.Tensor, scales: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """float32 [M, N] of whole sums [2 · M, N], those of coarse numbers before those of fine ones: rounded once before
    they are scaled, as by the quick step."""
    coarse, fine = both.double().chunk(2)
    return fine.add_(coarse, alpha=_FINE_LEVELS).float().mul_(scales).mul_(steps / _FINE_LEVELS)


def _integer_products(vectors: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """int32 [M, N] of int8 [M, K] and [N, K]: floats add up to `_EXACT_PRODUCTS` products of eight bits without rounding."""
    found = torch.empty(len(vectors), len(numbers), dtype=torch.int32)
    columns = [
        (first, vectors[:, first : first + _EXACT_PRODUCTS].float())
        for first in range(0, numbers.shape[1], _EXACT_PRODUCTS)
    ]
    rows = max(1, _FLOAT_PORTION // numbers.shape[1])
    for start in range(0, len(numbers), rows):
        portion = numbers[start : start + rows]
        parts = [part @ portion[:, first : first + _EXACT_PRODUCTS].float().t() for first, part in columns]
        found[:, start : start + rows] = sum(part.to(torch.int32) for part in parts)
    return found


def pack_int8(numbers: torch.Tensor, scales: torch.Tensor) -> Int8Matrix:
    """The quickest there is on this machine for int8 [N, K] with a scale a row."""
    return BlockedInt8Matmul(numbers, scales) if has_fast_onednn() else FloatInt8Matmul(numbers, scales)


@functools.cache
def has_fast_onednn() -> bool:
    """Whether oneDNN multiplies whole numbers here, exactly and in a kernel made for it: processors without
    instructions for it (VNNI) add pairs of products in sixteen bits, which overflow; for others its build may have a
    reference only, which takes one number at a time."""
    if not torch._C._has_mkldnn or torch.backends.cpu.get_cpu_capability() in ("NO AVX", "DEFAULT"):
        return False
    most = torch.full((_PROBE, _PROBE), _LEVELS, dtype=torch.int8)
    try:
        found = BlockedInt8Matmul(most, torch.ones(_PROBE)).multiply_split(most[:2], torch.ones(1, 1))
    except RuntimeError:  # built without that kernel
        return False
    wanted = _PROBE * _LEVELS**2
    return bool((found - wanted * (1 + 1 / _FINE_LEVELS)).abs().max() < _PROBE) and not _has_reference_kernel()


def _has_reference_kernel() -> bool:
    """Whether products in blocks are as slow as one number at a time."""
    matrix = BlockedInt8Matmul(torch.ones(_SHAPE, dtype=torch.int8), torch.ones(_SHAPE[0]))
    _seconds(matrix)  # makes the kernel
    return all(_seconds(matrix) > _MAX_SECONDS for _ in range(3))


def _seconds(matrix: Int8Matrix) -> float:
    """Of one product with two vectors."""
    halves, steps = torch.ones(4, _SHAPE[1], dtype=torch.int8), torch.ones(2, 1)
    begun = time.perf_counter()
    matrix.multiply_split(halves, steps)
    return time.perf_counter() - begun


def extra_bytes_per_row() -> int:
    """Bytes that a packed matrix keeps for each of its rows."""
    return 8 if has_fast_onednn() else 4
