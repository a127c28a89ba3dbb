"""8-bit matrices and their product with vectors.

Each output row of a weight matrix is divided by its largest magnitude and rounded to −127 … 127 (absmax, symmetric, one
scale per row: Dettmers et al. 2022, "LLM.int8()", https://arxiv.org/abs/2208.07339). Each vector is split into two
8-bit vectors, a coarse one and the remainder, and so keeps about fifteen bits; eight bits alone lose much if single
features are large, as the paper shows. Sums of products of 8-bit numbers are integers below 2³¹ and therefore exact: a
result row does not depend on the other rows of the batch, so verifying a draft at once equals single steps.
"""

from __future__ import annotations

import functools
import time
from typing import Any, Protocol

import torch

from decodescope.core.models.quantized.tensor_files import allocate_pages
from decodescope.core.native import native_library
from decodescope.core.native.native_library import NativeLibrary
from decodescope.core.native.tensor_address import optional_address, tensor_address

_LEVELS = 127
_FINE_LEVELS = 254
"""Levels of the second number within one step of the first; it covers half a step on either side."""
_TINY = 1e-30
_EXACT_PRODUCTS = 1024
"""Number of products of 127 and 127 whose sum is below 2²⁴, up to which float32 represents every integer."""
_FLOAT_PORTION = 2**17
"""Number of weights converted to floats at a time, so that they fit into the CPU cache."""
_PROBE = 64
_SHAPE = (512, 256)
"""Outputs and inputs of the benchmark matrix."""
_MAX_SECONDS = 1e-3
"""Time limit in seconds, far above that of a proper kernel: oneDNN's reference kernel took 10 to 20 ms."""


def quantize_rows_into(
    rows: torch.Tensor, numbers: torch.Tensor, scales: torch.Tensor, scratch: torch.Tensor
) -> None:  # fmt: skip
    """Quantize `rows` [n, K] into `numbers` and `scales`; `scratch` is float32 [n, K]."""
    exact = scratch.copy_(rows)
    # two reductions over numbers take a third of the time of the maximum norm
    torch.maximum(exact.amax(-1), exact.amin(-1).neg_(), out=scales).div_(_LEVELS).clamp_(min=_TINY)
    numbers.copy_(exact.div_(scales[:, None]).round_())


def split_vectors(vectors: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return int8 [2 · M, K], coarse numbers before fine ones, and float32 coarse step sizes [M, 1], of vectors [M,
    K].
    """
    steps = torch.linalg.vector_norm(vectors, torch.inf, -1, keepdim=True).div_(_LEVELS).clamp_(min=_TINY)
    fine = vectors / steps
    coarse = fine.round()
    fine.sub_(coarse).mul_(_FINE_LEVELS).round_()
    return torch.cat([coarse, fine]).to(torch.int8), steps


class Int8Matrix(Protocol):
    """Packed weights [N, K]."""

    @property
    def nbytes(self) -> int:
        """Bytes of the packed numbers and their scales."""

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Multiply vectors returned by `split_vectors`; return float32 [M, N]."""


class BlockedInt8Matmul:
    """Matrix packed by oneDNN in blocks for this processor and multiplied by its integer kernels."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        self.scales = scales
        self._zeros = torch.zeros(len(scales), dtype=torch.int32)
        self._packed: torch.Tensor = torch.ops.onednn.qlinear_prepack(numbers, None)

    @property
    def nbytes(self) -> int:
        """Bytes: one per weight, and a 4-byte scale and a 4-byte zero point per row."""
        return self._packed.numel() + 8 * len(self.scales)

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Multiply vectors returned by `split_vectors`; return float32 [M, N]."""
        both = torch.ops.onednn.qlinear_pointwise(
            halves, 1.0, 0, self._packed, torch.ones_like(self.scales), self._zeros, None, 1.0, 0, torch.float32,
            "none", [], "",
        )  # fmt: skip
        return _combine_halves(both, self.scales, steps)

    def columns(self, start: int, count: int, inputs: int) -> torch.Tensor:
        """Return the numbers of `count` of the `inputs` columns, int8 [count, N]."""
        units = torch.zeros(count, inputs, dtype=torch.int8)
        units[range(count), range(start, start + count)] = 1
        exact: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
            units, 1.0, 0, self._packed, torch.ones_like(self.scales), self._zeros, None, 1.0, 0, torch.float32,
            "none", [], "",
        )  # fmt: skip
        return exact.to(torch.int8)


class FloatInt8Matmul:
    """Unpacked integers that are multiplied as floats, one portion at a time. Slower; same results."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor) -> None:
        self.numbers, self.scales = numbers, scales

    @property
    def nbytes(self) -> int:
        """Bytes: one per weight, and a 4-byte scale per row."""
        return self.numbers.numel() + 4 * len(self.scales)

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Multiply vectors returned by `split_vectors`; return float32 [M, N]."""
        return _combine_halves(_integer_products(halves, self.numbers), self.scales, steps)


def _combine_halves(both: torch.Tensor, scales: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Combine integer sums [2 · M, N], coarse before fine, into float32 [M, N]: rounded once before scaling, as in the
    native kernel.
    """
    coarse, fine = both.double().chunk(2)
    return fine.add_(coarse, alpha=_FINE_LEVELS).float().mul_(scales).mul_(steps / _FINE_LEVELS)


def _integer_products(vectors: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Return int32 products [M, N] of int8 [M, K] and [N, K]: floats add up to `_EXACT_PRODUCTS` products of 8-bit
    numbers exactly.
    """
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
    """Return the fastest implementation on this computer for int8 [N, K] with one scale per row."""
    return BlockedInt8Matmul(numbers, scales) if has_fast_onednn() else FloatInt8Matmul(numbers, scales)


@functools.cache
def has_fast_onednn() -> bool:
    """Return whether oneDNN multiplies integers exactly here, with an optimized kernel.

    Processors without the instructions (VNNI) add pairs of products in 16 bits, which overflow; for others its build
    may include only a reference kernel, which handles one number at a time.
    """
    if not torch._C._has_mkldnn or torch.backends.cpu.get_cpu_capability() in ("NO AVX", "DEFAULT"):
        return False
    max_levels = torch.full((_PROBE, _PROBE), _LEVELS, dtype=torch.int8)
    try:
        found = BlockedInt8Matmul(max_levels, torch.ones(_PROBE)).multiply_split(max_levels[:2], torch.ones(1, 1))
    except RuntimeError:  # built without that kernel
        return False
    expected = _PROBE * _LEVELS**2
    return bool((found - expected * (1 + 1 / _FINE_LEVELS)).abs().max() < _PROBE) and not _has_reference_kernel()


def _has_reference_kernel() -> bool:
    """Return whether blocked products are as slow as the reference kernel."""
    matrix = BlockedInt8Matmul(torch.ones(_SHAPE, dtype=torch.int8), torch.ones(_SHAPE[0]))
    _seconds(matrix)  # creates the kernel
    return all(_seconds(matrix) > _MAX_SECONDS for _ in range(3))


def _seconds(matrix: Int8Matrix) -> float:
    """Return the time of one product with two vectors in seconds."""
    halves, steps = torch.ones(4, _SHAPE[1], dtype=torch.int8), torch.ones(2, 1)
    begun = time.perf_counter()
    matrix.multiply_split(halves, steps)
    return time.perf_counter() - begun


def extra_bytes_per_row() -> int:
    """Return the bytes that a packed matrix stores per row in addition to the weights."""
    return 8 if has_fast_onednn() else 4


_MAX_ROWWISE = 32
"""Maximum number of vectors that are always multiplied row by row."""
_COLUMN_PORTION = 512
"""Number of columns of a blocked matrix read at a time."""


def _multiply_rows(library: NativeLibrary, matrix: Any, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Multiply vectors returned by `split_vectors` by a row-major matrix in native code; return float32 [M, N]."""
    halves, steps, rows = halves.contiguous(), steps.contiguous(), len(steps)
    found = torch.empty(rows, matrix.outputs, dtype=torch.float32, device="cpu")
    library.multiply(
        matrix, tensor_address(halves, torch.int8, 2 * rows * matrix.inputs),
        tensor_address(steps, torch.float32, rows), rows, tensor_address(found, torch.float32), torch.get_num_threads(),
    )  # fmt: skip
    return found


class Int8RowMatrix:
    """int8 [N, K] and float32 scales [N]."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor, library: NativeLibrary) -> None:
        self._numbers, self._scales, self._library = numbers.contiguous(), scales, library
        self._sums = self._numbers.sum(1, dtype=torch.int32) * library.vector_offset if library.vector_offset else None
        """Offsets that the kernel's shift of the vectors adds to their products."""

    @property
    def nbytes(self) -> int:
        """Bytes: one per weight, and per row a 4-byte scale and, if the kernel needs it, a 4-byte sum."""
        return self._numbers.numel() + (4 if self._sums is None else 8) * len(self._scales)

    def to_struct(self, bias: int | None) -> Any:
        """Return the struct for the native kernel; `bias`: an address, or None."""
        return native_library.MatrixStruct(
            native_library.WEIGHTS["int8"], *self._numbers.shape, tensor_address(self._numbers, torch.int8), bias,
            tensor_address(self._scales, torch.float32, len(self._numbers)),
            optional_address(self._sums, torch.int32, len(self._numbers)),
        )  # fmt: skip

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Multiply vectors returned by `split_vectors`; return float32 [M, N]."""
        rows = len(steps)
        if rows > _MAX_ROWWISE and has_fast_onednn():
            return BlockedInt8Matmul(self._numbers, self._scales).multiply_split(halves, steps)
        return _multiply_rows(self._library, self.to_struct(None), halves, steps)


def to_int8_rows(matrix: Int8Matrix, inputs: int, library: NativeLibrary) -> Int8RowMatrix:
    """Convert a packed matrix to row-major order; the content of a blocked matrix is its product with unit vectors."""
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


GROUP = 32
"""Number of weights that share a scale and an offset."""
_BLOCK = 16
"""The kernel requires a multiple of this number of outputs."""
PACKED_OUTPUTS = 64
"""Number of outputs packed together; a portion that is no multiple of it would be packed differently."""
_PACK_PORTION = 2**17
"""Number of weights packed at a time; meanwhile each takes some forty bytes."""


def fits_int4(outputs: int, inputs: int) -> bool:
    """Return whether the kernel can multiply a matrix [outputs, inputs]; other matrices stay in 8 bits."""
    return outputs % _BLOCK == 0 and inputs % GROUP == 0


def quantize_groups_into(rows: torch.Tensor, codes: torch.Tensor, scratch: torch.Tensor) -> torch.Tensor:
    """Quantize `rows` [n, K] into `codes` and return scales and offsets; `scratch` is float32 [n, K]."""
    groups = scratch.copy_(rows).view(len(rows), -1, GROUP)
    low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    scale = ((high - low) / 15).clamp_(min=1e-8).bfloat16().float()
    offset = (low + 8 * scale).bfloat16().float()
    exact = groups.sub_(offset).div_(scale).add_(8).round_().clamp_(0, 15)
    codes.copy_(exact.flatten(-2))
    return torch.cat([scale, offset], -1).transpose(0, 1).contiguous().bfloat16()


class Int4Matrix:
    """Packed weights [N, K]; N is a multiple of 16, K of 32."""

    def __init__(self, packed: torch.Tensor, scales: torch.Tensor) -> None:
        self._packed, self._scales = packed, scales

    @property
    def tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Codes in the kernel's layout, and scales and offsets."""
        return self._packed, self._scales

    @property
    def nbytes(self) -> int:
        """Bytes: half a byte per weight and four bytes per group."""
        return self._packed.nbytes + self._scales.nbytes

    def multiply(self, vectors: torch.Tensor) -> torch.Tensor:
        """Multiply vectors [M, K]; return float32 [M, N]."""
        product: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            vectors.bfloat16(), self._packed, GROUP, self._scales
        )
        return product.float()


def pack_int4(rows: torch.Tensor) -> Int4Matrix:
    """Pack `rows` [N, K] of floats into 4 bits, in portions: codes take 32 bits each before packing."""
    outputs, inputs = rows.shape
    portion = max(PACKED_OUTPUTS, (_PACK_PORTION // inputs) // PACKED_OUTPUTS * PACKED_OUTPUTS)
    packed, scales_and_offsets = [], []
    codes = allocate_pages((min(portion, outputs), inputs), torch.int32)
    scratch = allocate_pages((min(portion, outputs), inputs), torch.float32)
    for start in range(0, outputs, portion):
        part = rows[start : start + portion]
        scales_and_offsets.append(quantize_groups_into(part, codes[: len(part)], scratch[: len(part)]))
        packed.append(torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes[: len(part)], 1))
    whole = allocate_pages((outputs, *packed[0].shape[1:]), packed[0].dtype)
    return Int4Matrix(torch.cat(packed, out=whole), torch.cat(scales_and_offsets, 1))


class Int4RowMatrix:
    """Packed weights [N, K] in the layout of `core/native/source/matmul_int4.h`."""

    def __init__(self, numbers: torch.Tensor, scales: torch.Tensor, library: NativeLibrary) -> None:
        """Initialize the matrix from uint8 codes [N, K / 2] and bfloat16 [N, 2, K / 32], a row's scales before its
        offsets.
        """
        self._numbers, self._scales, self._library = numbers, scales, library

    @property
    def nbytes(self) -> int:
        """Bytes: half a byte per weight and four bytes per group."""
        return self._numbers.nbytes + self._scales.nbytes

    def to_struct(self, bias: int | None) -> Any:
        """Return the struct for the native kernel; `bias`: an address, or None."""
        outputs, half = self._numbers.shape
        return native_library.MatrixStruct(
            native_library.WEIGHTS["int4"], outputs, 2 * half, tensor_address(self._numbers, torch.uint8), bias,
            tensor_address(self._scales, torch.bfloat16),
        )  # fmt: skip

    def multiply(self, vectors: torch.Tensor) -> torch.Tensor:
        """Multiply vectors [M, K]; return float32 [M, N]."""
        return self.multiply_split(*split_vectors(vectors.float()))

    def multiply_split(self, halves: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Multiply vectors returned by `split_vectors`; return float32 [M, N]."""
        return _multiply_rows(self._library, self.to_struct(None), halves, steps)


def to_int4_rows(matrix: Int4Matrix | Int4RowMatrix, library: NativeLibrary) -> Int4RowMatrix:
    """Convert a packed matrix to row-major order."""
    if isinstance(matrix, Int4RowMatrix):
        return matrix
    packed, scales_and_offsets = matrix.tensors
    outputs, inputs = packed.shape[0], GROUP * scales_and_offsets.shape[0]
    numbers = allocate_pages((outputs, inputs // 2), torch.uint8)
    for start in range(0, outputs, PACKED_OUTPUTS):
        part = packed[start : start + PACKED_OUTPUTS]
        numbers[start : start + PACKED_OUTPUTS] = _pack_groups(
            _split_nibbles(part)[_packed_positions(len(part), inputs)]
        )
    return Int4RowMatrix(numbers, scales_and_offsets.permute(1, 2, 0).contiguous(), library)


def _split_nibbles(packed: torch.Tensor) -> torch.Tensor:
    """Return uint8 [2 · n]: the lower and the upper half of every byte."""
    return torch.stack([packed & 15, packed >> 4], -1).flatten()


def _pack_groups(numbers: torch.Tensor) -> torch.Tensor:
    """Return uint8 [n, K / 2] of codes [n, K]: two groups in 32 bytes, a remaining one in 16."""
    paired = numbers.shape[1] // (2 * GROUP) * 2 * GROUP
    first, second = numbers[:, :paired].reshape(len(numbers), -1, 2, GROUP).unbind(2)
    rest = numbers[:, paired:]
    left, right = rest[:, : GROUP // 2], rest[:, GROUP // 2 :]
    return torch.cat([(first | second << 4).flatten(1), left | right << 4], 1)


@functools.lru_cache(maxsize=8)
def _packed_positions(outputs: int, inputs: int) -> torch.Tensor:
    """Return int64 [outputs, inputs]: the position at which torch packs each code, which depends on the processor.

    It is found by packing each position's own index, one hexadecimal digit at a time.
    """
    own = torch.arange(outputs * inputs).view(outputs, inputs)
    found, factor = torch.zeros(outputs * inputs, dtype=torch.int64), 1
    while factor < own.numel():
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu((own // factor % 16).to(torch.int32), 1)
        found += _split_nibbles(packed).long() * factor
        factor *= 16
    return found.argsort().view(outputs, inputs)
