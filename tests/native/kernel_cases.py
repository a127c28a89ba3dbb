"""Write a file of cases for tests/native/kernel_host.cpp: inputs of the native functions, and float64 references.

The references are computed with NumPy from the definitions of the operations. Shapes are odd on purpose: a vocabulary
of one token, one head, head sizes and widths that no vector of a processor divides, 1 to 17 rows, weights that are
infinite or no numbers.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from decodescope.core.models.gguf.block_formats import NATIVE, dequantize
from decodescope.core.models.gguf.gguf_file import FORMATS
from decodescope.core.native import native_library as native

Array = np.ndarray[Any, np.dtype[Any]]
MAGIC = "decodescope kernel cases"
TYPES = {"float32": 4, "float64": 8, "int64": 64, "uint16": 16}
"""Types of outputs by their numbers in the host."""
PANELS = (8, 16, 32)
"""Rows of a panel, by the width of the vectors of a processor."""
BLOCK_FORMATS = {fmt.name: fmt for fmt in FORMATS.values() if fmt.name in NATIVE and fmt.block_weights > 1}
HALF_NUMBERS = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,),
}  # fmt: skip
"""Offsets of the float16 numbers of a block: random bytes would be infinities and no numbers among others."""
EPSILON = 2.0**-22
"""Error of a float32 sum of products relative to the sum of the sizes of the products, with a margin for its order."""
_ODD_SIZES = (1, 3, 17, 50, 64, 65, 80, 100)


class Offset:
    """An offset in a segment of a case."""

    def __init__(self, segment: int, offset: int = 0) -> None:
        self.segment, self.offset = segment, offset

    def __add__(self, more: int) -> Offset:
        return Offset(self.segment, self.offset + more)


Argument = int | float | Offset | None


class CaseWriter:
    """Builds one case: arrays, structs with addresses of arrays, calls, and what they have to write."""

    def __init__(self, name: str, panel: int = 0) -> None:
        """`panel`: the case is for processors whose panels have this number of rows; 0 for all."""
        self._name, self._panel = name, panel
        self._segments: list[tuple[bytes, bool]] = []
        self._addresses: list[tuple[int, int, int, int]] = []
        self._calls: list[bytes] = []
        self._expected: list[bytes] = []
        self._equal: list[tuple[int, int, int, int, int]] = []

    def add(self, values: Array | bytes, odd: bool = False) -> Offset:
        """Add an array as a segment of its own; with `odd`, at an odd address."""
        stored = values if isinstance(values, bytes) else np.ascontiguousarray(values).tobytes()
        self._segments.append((stored, odd))
        return Offset(len(self._segments) - 1)

    def output(self, count: int, item_bytes: int = 4) -> Offset:
        """Add an array of `count` items with no defined values."""
        return self.add(b"\xa5" * (count * item_bytes))

    def add_struct(self, *values: tuple[ctypes.Structure, dict[str, Offset]]) -> Offset:
        """Add structs one after another; the fields by the given paths ("layer", "norm.weight") get addresses."""
        place = self.add(b"".join(bytes(value) for value, _ in values))
        start = 0
        for value, addresses in values:
            for path, target in addresses.items():
                offset = start + _offset_of(type(value), path)
                self._addresses.append((place.segment, offset, target.segment, target.offset))
            start += ctypes.sizeof(value)
        return place

    def add_pointers(self, *targets: Offset) -> Offset:
        """Add an array of addresses."""
        place = self.add(bytes(8 * len(targets)))
        self._addresses += [(place.segment, 8 * i, own.segment, own.offset) for i, own in enumerate(targets)]
        return place

    def call(self, function: str, *arguments: Argument, returns: int = 0) -> None:
        encoded = [_encode(argument) for argument in arguments]
        self._calls.append(_text(function) + _numbers(len(encoded)) + b"".join(encoded) + _numbers(returns))

    def expect(self, place: Offset, wanted: Array, limits: Array | float, dtype: str = "float32") -> None:
        """Require numbers within `limits` of `wanted`."""
        flat = np.ascontiguousarray(wanted, dtype=np.float64).ravel()
        allowed = np.ascontiguousarray(np.broadcast_to(limits, np.shape(wanted)), dtype=np.float64).ravel()
        head = _numbers(place.segment, place.offset, TYPES[dtype], flat.size)
        self._expected.append(head + flat.tobytes() + allowed.tobytes())

    def expect_equal(self, first: Offset, second: Offset, size: int) -> None:
        """Require equal bytes."""
        self._equal.append((first.segment, first.offset, second.segment, second.offset, size))

    def encoded(self) -> bytes:
        """Return the case in the format of the host."""
        parts = [_text(self._name), _numbers(self._panel, len(self._segments))]
        parts += [_numbers(len(stored), odd) + stored for stored, odd in self._segments]
        parts += [_numbers(len(self._addresses)), *(_numbers(*own) for own in self._addresses)]
        parts += [_numbers(len(self._calls)), *self._calls, _numbers(len(self._expected)), *self._expected]
        parts += [_numbers(len(self._equal)), *(_numbers(*own) for own in self._equal)]
        return b"".join(parts)


def _numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _text(value: str) -> bytes:
    return _numbers(len(value)) + value.encode("ascii")


def _encode(argument: Argument) -> bytes:
    if argument is None:
        return _numbers(3, 0, 0)
    if isinstance(argument, Offset):
        return _numbers(2, argument.segment, argument.offset)
    return struct.pack("<qdq", 1, argument, 0) if isinstance(argument, float) else _numbers(0, argument, 0)


def _offset_of(kind: Any, path: str) -> int:
    """Return the offset of a field such as "project.0.weights" in a struct."""
    offset = 0
    for name in path.split("."):
        if name.isdigit():
            kind = kind._type_
            offset += int(name) * ctypes.sizeof(kind)
        else:
            offset += getattr(kind, name).offset
            kind = dict(kind._fields_)[name]
    return offset


class Weights:
    """A random matrix of a kind of `native.WEIGHTS`: its bytes, and its numbers as float64 [outputs, inputs]."""

    def __init__(self, kind: str, outputs: int, inputs: int, seed: int = 0) -> None:
        self.kind, self.outputs, self.inputs = kind, outputs, inputs
        generator = np.random.default_rng(seed)
        values = generator.standard_normal((outputs, inputs)).astype(np.float32)
        self.scales: Array | None = None
        self.sums: Array | None = None
        if kind in BLOCK_FORMATS:
            self.stored = random_blocks(kind, outputs, inputs, seed)
            blocks = torch.from_numpy(self.stored.copy())
            self.exact = dequantize(blocks, BLOCK_FORMATS[kind]).double().numpy()
        elif kind == "int8":
            codes = generator.integers(-127, 128, (outputs, inputs)).astype(np.int8)
            self.stored, self.scales = codes, generator.random(outputs).astype(np.float32) / 100
            self.sums = 128 * codes.astype(np.int32).sum(1, dtype=np.int32)
            self.exact = codes * self.scales[:, None].astype(np.float64)
        elif kind == "int4":
            self._set_int4(generator)
        else:
            self.stored, self.exact = to_kind(values, kind)

    def _set_int4(self, generator: np.random.Generator) -> None:
        groups = self.inputs // 32
        codes = generator.integers(0, 16, (self.outputs, groups, 32)).astype(np.uint8)
        pair = codes[:, : groups // 2 * 2].reshape(self.outputs, -1, 2, 32)
        packed = (pair[:, :, 0] | pair[:, :, 1] << 4).reshape(self.outputs, -1)
        if groups % 2:
            last = codes[:, -1]
            packed = np.concatenate((packed, last[:, :16] | last[:, 16:] << 4), 1)
        scales = generator.standard_normal((self.outputs, 2, groups)).astype(np.float32) / 50
        self.stored = packed
        self.scales, numbers = to_kind(scales, "bfloat16")
        scale, offset = numbers[:, 0, :, None], numbers[:, 1, :, None]
        self.exact = ((codes - 8.0) * scale + offset).reshape(self.outputs, self.inputs)

    def spoil(self, rows: Sequence[int], value: float) -> None:
        """Replace a number of some rows of floats, or a scale of blocks."""
        for row in rows:
            if self.kind in BLOCK_FORMATS:
                fmt, start = BLOCK_FORMATS[self.kind], HALF_NUMBERS[self.kind][0]
                self.stored[row, start : start + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
                self.exact[row, : fmt.block_weights] = np.nan
            else:
                self.exact[row, 0] = value
                self.stored[row, 0] = to_kind(np.array([value], np.float32), self.kind)[0][0]

    def product(self, vectors: Array) -> tuple[Array, Array]:
        """Return the products with float32 vectors [rows, inputs], and the limits of their errors."""
        if self.kind not in BLOCK_FORMATS:
            return product(vectors.astype(np.float64), self.exact)
        wanted, limits = product(round_to_blocks(vectors), self.exact)
        return wanted, 4 * limits  # products of codes, and what their offset makes of it, cancel each other

    def bytes_in(self, layout: str, panel: int) -> Array:
        """Return the stored weights in one of `native.LAYOUTS`."""
        if layout == "column_major":
            return np.ascontiguousarray(self.stored.T)
        if layout == "row_major":
            return self.stored
        count = -(-self.outputs // panel)
        padded = np.zeros((count * panel, self.inputs), self.stored.dtype)
        padded[: self.outputs] = self.stored
        return np.ascontiguousarray(padded.reshape(count, panel, self.inputs).transpose(0, 2, 1))

    def place(
        self, case: CaseWriter, bias: Array | None = None, layout: str = "row_major", panel: int = 0
    ) -> tuple[native.MatrixStruct, dict[str, Offset]]:
        """Add the weights to a case; return the struct of the matrix and its addresses."""
        odd = self.kind in BLOCK_FORMATS
        addresses = {"weights": case.add(self.bytes_in(layout, panel), odd)}
        for name, values in (("bias", bias), ("scales", self.scales), ("sums", self.sums)):
            if values is not None:
                addresses[name] = case.add(values)
        fields = {"outputs": self.outputs, "inputs": self.inputs, "layout": native.LAYOUTS[layout]}
        return native.MatrixStruct(kind=native.WEIGHTS[self.kind], **fields), addresses


def to_kind(values: Array, kind: str) -> tuple[Array, Array]:
    """Return float32 values rounded to a kind of floats: as stored, and as float64."""
    if kind == "bfloat16":
        rounded = torch.from_numpy(np.ascontiguousarray(values)).bfloat16()
        return rounded.view(torch.int16).numpy().view(np.uint16), rounded.double().numpy()
    stored = values.astype({"float32": np.float32, "float16": np.float16}[kind])
    return stored, stored.astype(np.float64)


def random_blocks(name: str, rows: int, inputs: int, seed: int) -> Array:
    """Return blocks of random codes and scales, uint8 [rows, row bytes]."""
    fmt, generator = BLOCK_FORMATS[name], np.random.default_rng(seed)
    count = inputs // fmt.block_weights
    blocks = generator.integers(0, 256, (rows, count, fmt.block_bytes), dtype=np.uint8)
    for place in HALF_NUMBERS[name]:
        scales = generator.standard_normal((rows, count, 1)) / 100
        blocks[:, :, place : place + 2] = scales.astype("<f2").view(np.uint8)
    return blocks.reshape(rows, -1)


def round_to_blocks(vectors: Array) -> Array:
    """Return the float64 numbers that the kernels multiply for vectors quantized to 8 bits in blocks of 32."""
    blocks = vectors.astype(np.float32).reshape(*vectors.shape[:-1], -1, 32)
    greatest = np.abs(blocks).max(-1, keepdims=True)
    factor = np.divide(np.float32(127), greatest, out=np.zeros_like(greatest), where=greatest >= 1e-30)
    codes = np.rint(blocks * factor).astype(np.float64)
    scale = (greatest / np.float32(127)).astype(np.float64)
    return (codes * scale).reshape(vectors.shape)


def split_vectors(vectors: Array) -> tuple[Array, Array, Array]:
    """Return coarse and fine 8-bit numbers [2 · rows, width], float32 steps, and the float64 numbers that they are."""
    steps = np.maximum(np.abs(vectors).max(1) / np.float32(127), np.float32(1e-30)).astype(np.float32)
    exact = vectors / steps[:, None]
    coarse = np.rint(exact)
    fine = np.rint((exact - coarse) * np.float32(254))
    numbers = (254 * coarse.astype(np.float64) + fine) / 254 * steps[:, None].astype(np.float64)
    return np.concatenate((coarse, fine)).astype(np.int8), steps, numbers


def product(vectors: Array, weights: Array) -> tuple[Array, Array]:
    """Return the products [rows, outputs] and the limits of their errors."""
    with np.errstate(invalid="ignore", over="ignore"):
        return vectors @ weights.T, np.abs(vectors) @ np.abs(weights).T * EPSILON + 1e-12


def _vectors(rows: int, width: int, seed: int = 7) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)


def float_product_cases() -> Iterator[CaseWriter]:
    """Products with floats in each layout, of several rows at once and one by one, in one thread and in two."""
    for kind in ("float32", "bfloat16", "float16"):
        for inputs, outputs in ((1, 1), (3, 5), (17, 4), (50, 77), (80, 64), (65, 130), (257, 400)):
            for layout in native.LAYOUTS:
                for panel in PANELS if layout == "in_panels" else (0,):
                    for rows in (1, 2, 3, 5, 13):
                        yield _product_case(kind, rows, inputs, outputs, layout, panel)


def _product_case(
    kind: str, rows: int, inputs: int, outputs: int, layout: str = "row_major", panel: int = 0
) -> CaseWriter:
    case = CaseWriter(f"product {kind} {layout} {rows} x {inputs} x {outputs}", panel)
    weights, vectors = Weights(kind, outputs, inputs), _vectors(rows, inputs)
    bias = np.random.default_rng(1).standard_normal(outputs).astype(np.float32)
    matrix = case.add_struct(weights.place(case, bias, layout, panel))
    return _call_product(case, matrix, vectors, weights.product(vectors), bias)


def _call_product(
    case: CaseWriter, matrix: Offset, vectors: Array, result: tuple[Array, Array], bias: Array
) -> CaseWriter:
    wanted, limits = result
    rows, outputs = wanted.shape
    given = case.add(vectors)
    found, alone = case.output(wanted.size), case.output(wanted.size)
    case.call("multiply_blocks", matrix, given, rows, found, 2)
    for row in range(rows):
        case.call("multiply_blocks", matrix, given + row * 4 * vectors.shape[1], 1, alone + row * 4 * outputs, 1)
    case.expect(found, wanted + bias, limits + EPSILON * np.abs(wanted + bias))
    case.expect_equal(found, alone, 4 * wanted.size)
    return case


def block_product_cases() -> Iterator[CaseWriter]:
    """Products with weights in blocks, of 1 to 17 rows; a row is the same alone to the last bit."""
    for name, fmt in BLOCK_FORMATS.items():
        is_long = fmt.block_weights == 256
        sizes = ((256, 9), (512, 24), (1280, 400)) if is_long else ((32, 1), (160, 7), (288, 20), (576, 400))
        for inputs, outputs in sizes:
            for rows in (1, 2, 5, 6, 7, 8, 17) if outputs < 100 else (1, 40):
                yield _product_case(name, rows, inputs, outputs)
        yield _unusual_vectors_case(name, fmt.block_weights)
        for value in (np.nan, np.inf):
            yield _spoiled_case(name, fmt.block_weights, value, 7)
            yield _spoiled_case(name, fmt.block_weights, value, 1)


def _spoiled_case(kind: str, inputs: int, value: float, rows: int) -> CaseWriter:
    """Weights that are no numbers or infinite change only the outputs of their rows."""
    case = CaseWriter(f"product {kind} with {value}, {rows} rows")
    weights, vectors, bias = Weights(kind, 11, inputs), np.abs(_vectors(rows, inputs)) + 1, np.zeros(11, np.float32)
    weights.spoil((2,), value)
    matrix = case.add_struct(weights.place(case, bias))
    wanted, limits = weights.product(vectors)
    found = case.output(wanted.size)
    case.call("multiply_blocks", matrix, case.add(vectors), rows, found, 1)
    kept = [column for column in range(11) if column != 2]
    for row in range(rows):
        for column in kept if kind in BLOCK_FORMATS and np.isinf(value) else range(11):
            place = found + 4 * (row * 11 + column)
            case.expect(place, wanted[row, column : column + 1], limits[row, column : column + 1])
    return case


def _unusual_vectors_case(name: str, inputs: int) -> CaseWriter:
    """Vectors of zeros, of tiny numbers, and with numbers that are not finite."""
    case = CaseWriter(f"product {name} with unusual vectors")
    weights, vectors = Weights(name, 12, inputs), _vectors(9, inputs)
    vectors[1], vectors[2] = 0, 1e-35
    vectors[4, 3], vectors[6, 5] = np.nan, np.inf
    matrix = case.add_struct(weights.place(case))
    finite = np.where(np.isfinite(vectors), vectors, 0)
    wanted, limits = product(round_to_blocks(np.where(np.abs(finite) < 1e-30, 0, finite)), weights.exact)
    wanted[4] = wanted[6] = np.nan
    found = case.output(wanted.size)
    case.call("multiply_blocks", matrix, case.add(vectors), 9, found, 1)
    case.expect(found, wanted, limits)
    return case


def float_spoiled_cases() -> Iterator[CaseWriter]:
    """Products with floats that are no numbers or infinite."""
    for kind in ("float32", "bfloat16", "float16"):
        for value in (np.nan, np.inf, -np.inf):
            yield _spoiled_case(kind, 50, value, 3)


def small_integer_cases() -> Iterator[CaseWriter]:
    """Products of split vectors with int8 and int4."""
    for kind in ("int8", "int4"):
        sizes = (32, 64, 96, 160, 2080) if kind == "int4" else (1, 3, 16, 65, 80, 130, 4100)
        for inputs in sizes:
            for outputs in (1, 3, 8, 77) if inputs < 1000 else (70,):
                for rows in (1, 2, 3, 5, 17):
                    yield _split_case(kind, rows, inputs, outputs)


def _split_case(kind: str, rows: int, inputs: int, outputs: int) -> CaseWriter:
    case = CaseWriter(f"split product {kind} {rows} x {inputs} x {outputs}")
    weights, (halves, steps, numbers) = Weights(kind, outputs, inputs), split_vectors(_vectors(rows, inputs))
    matrix = case.add_struct(weights.place(case))
    wanted, limits = product(numbers, weights.exact)
    if kind == "int4":  # codes less 8 and offsets cancel
        groups = weights.exact.reshape(outputs, -1, 32)
        limits = limits + np.abs(numbers) @ np.abs(groups).max(2).repeat(32, 1).T * EPSILON * 8
    found, alone = case.output(wanted.size), case.output(wanted.size)
    case.call("multiply", matrix, case.add(halves), case.add(steps), rows, found, 2)
    for row in range(rows):
        own, step = case.add(halves[[row, rows + row]]), case.add(steps[row : row + 1])
        case.call("multiply", matrix, own, step, 1, alone + row * 4 * outputs, 1)
    case.expect(found, wanted, limits)
    case.expect_equal(found, alone, 4 * wanted.size)
    return case


def row_cases() -> Iterator[CaseWriter]:
    """Rows of matrices as float32."""
    for kind in ("float32", "bfloat16", "float16", *BLOCK_FORMATS):
        case = CaseWriter(f"rows of {kind}")
        weights, ids = Weights(kind, 7, 512 if kind in BLOCK_FORMATS else 67), np.array([6, 0, 3, 3])
        matrix, found = case.add_struct(weights.place(case)), case.output(4 * weights.inputs)
        case.call("rows", matrix, case.add(ids), 4, found)
        wanted = weights.exact[ids]
        case.expect(found, wanted, np.abs(wanted).max() * 2.0**-23)
        yield case


def many_vector_cases() -> Iterator[CaseWriter]:
    """Products of many vectors with float32, added to what is there or not, and gated pairs."""
    for rows, inputs, outputs in ((1, 1, 1), (5, 3, 17), (14, 65, 33), (40, 80, 130)):
        weights, up = (Weights("float32", outputs, inputs, seed) for seed in (0, 3))
        vectors = _vectors(rows, inputs)
        for adds in (0, 1):
            case = CaseWriter(f"many vectors {rows} x {inputs} x {outputs}, adds {adds}")
            apart = outputs + 3
            before = _vectors(rows, apart, 5)
            wanted, limits = product(vectors.astype(np.float64), weights.exact)
            kept = before.astype(np.float64)
            kept[:, :outputs] = wanted + adds * kept[:, :outputs]
            allowed = np.zeros_like(kept)
            allowed[:, :outputs] = limits + EPSILON * np.abs(kept[:, :outputs])
            matrix, found = case.add_struct(weights.place(case)), case.add(before)
            case.call("product", matrix, case.add(vectors), rows, found, apart, adds, 2)
            case.expect(found, kept, allowed)
            yield case
        case = CaseWriter(f"gated {rows} x {inputs} x {outputs}")
        gate, first = product(vectors.astype(np.float64), weights.exact)
        other, second = product(vectors.astype(np.float64), up.exact)
        matrices = case.add_struct(weights.place(case)), case.add_struct(up.place(case))
        found = case.output(gate.size)
        case.call("gated", *matrices, case.add(vectors), rows, found, 2)
        wanted = silu(gate) * other
        case.expect(found, wanted, 2 * first * np.abs(other) + second * np.abs(gate) + 1e-5 * np.abs(wanted) + 1e-7)
        yield case


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "silu": silu,
    "relu": lambda x: np.maximum(x, 0),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: torch.nn.functional.gelu(torch.from_numpy(x)).numpy(),
}


def normalize(kind: str, hidden: Array, weight: Array, bias: Array | None, eps: float) -> Array:
    """Return float64 hidden [..., width], normalized."""
    if kind == "none":
        return hidden
    centered = hidden - hidden.mean(-1, keepdims=True) if kind == "layer_norm" else hidden
    scaled = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + eps) * weight
    return scaled if bias is None else scaled + bias


def norm_cases() -> Iterator[CaseWriter]:
    """Norms of rows of each odd size."""
    for kind in ("root_mean_square", "layer_norm"):
        for width in _ODD_SIZES:
            case = CaseWriter(f"{kind} {width}")
            hidden, weight = _vectors(3, width), _vectors(1, width, 3)[0]
            bias = _vectors(1, width, 4)[0] if kind == "layer_norm" else None
            addresses = {"weight": case.add(weight)} | ({} if bias is None else {"bias": case.add(bias)})
            norm = case.add_struct((native.NormStruct(kind=native.NORMS[kind], eps=1e-5), addresses))
            found = case.output(hidden.size)
            case.call("norm", case.add(hidden), norm, 3, width, found)
            wanted = normalize(kind, hidden.astype(np.float64), weight, bias, 1e-5)
            case.expect(found, wanted, 2e-6 * (1 + np.abs(wanted)))
            yield case


def softmax(scores: Array) -> Array:
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


def score_cases() -> Iterator[CaseWriter]:
    """Statistics of scores over a vocabulary: choices, spread, likely tokens, histogram."""
    for vocabulary in (1, 2, 15, 16, 17, 1000, 1025, 4099):
        for hidden_scores in (False, True):
            scores = 4 * _vectors(3, vocabulary, vocabulary)
            if hidden_scores:
                scores[:, 1::3] = -np.inf
            chosen = np.array([0, vocabulary // 2 // 3 * 3, vocabulary - 1])
            if hidden_scores:
                chosen = chosen // 3 * 3
            yield _choices_case(scores, chosen)
            yield _spread_case(scores)
            yield _likely_case(scores[0], 0.5 / vocabulary)
            yield _parts_case(scores[0])
            yield _stats_case(scores, chosen, min(5, vocabulary))


def _choices_case(scores: Array, chosen: Array) -> CaseWriter:
    rows, vocabulary = scores.shape
    case = CaseWriter(f"choices of {vocabulary}")
    exact, picked = softmax(scores.astype(np.float64)), np.take_along_axis(scores, chosen[:, None], 1)
    ranks = 1 + (scores > picked).sum(1)
    own = np.take_along_axis(exact, chosen[:, None], 1)[:, 0]
    wanted = np.stack((scores.argmax(1), exact.max(1), own, ranks), 1)
    found = case.output(wanted.size)
    case.call("choices", case.add(scores), rows, vocabulary, case.add(chosen), found)
    case.expect(found, wanted, np.array([0, 2e-6, 2e-6, 0]))
    return case


def _spread_case(scores: Array) -> CaseWriter:
    case = CaseWriter(f"spread of {scores.shape[1]}")
    wanted = np.zeros((len(scores), 6))
    for own, row in zip(scores.astype(np.float64), wanted, strict=True):
        finite = own[own > -np.inf]
        probabilities = softmax(finite)
        total = finite.max() + np.log(np.exp(finite - finite.max()).sum())
        entropy = -(probabilities * np.log(probabilities)).sum()
        row[:] = finite.max(), finite.min(), total, entropy, len(finite), finite.std()
    found = case.output(wanted.size, 8)
    case.call("spread", case.add(scores), *scores.shape, found)
    case.expect(found, wanted, np.array([0, 0, 1e-5, 1e-5, 0, 1e-5]) * (1 + np.abs(wanted)), "float64")
    return case


def _likely_case(scores: Array, threshold: float) -> CaseWriter:
    case = CaseWriter(f"likely of {len(scores)}")
    probabilities = softmax(scores.astype(np.float64))
    order = np.argsort(-probabilities, kind="stable")
    count = int((probabilities >= threshold).sum())
    tokens, found = case.output(count, 8), case.output(count)
    case.call("likely", case.add(scores), len(scores), float(threshold), len(scores), tokens, found, returns=count)
    case.expect(tokens, order[:count], 0, "int64")
    case.expect(found, probabilities[order[:count]], 2e-6)
    return case


def _parts_case(scores: Array) -> CaseWriter:
    case = CaseWriter(f"histogram of {len(scores)}")
    finite = scores[scores > -np.inf]
    low, high, parts = finite.min(), finite.max(), 7
    scale = np.float32(parts) / (high - low) if high > low else np.float32(0)
    wanted = np.bincount(np.minimum(((finite - low) * scale).astype(np.int64), parts - 1), minlength=parts)
    found = case.output(parts, 8)
    case.call("parts", case.add(scores), len(scores), float(low), float(high), parts, found)
    case.expect(found, wanted, 0, "int64")
    return case


def _stats_case(scores: Array, chosen: Array, top_n: int) -> CaseWriter:
    """The figures of a step without stages. Entropy has no defined value where a score is -inf."""
    rows, vocabulary = scores.shape
    case = CaseWriter(f"step statistics of {vocabulary}")
    logs = scores.astype(np.float64)
    logs = logs - (logs.max(1, keepdims=True) + np.log(np.exp(logs - logs.max(1, keepdims=True)).sum(1, keepdims=True)))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top_n]
    own = np.take_along_axis(logs, chosen[:, None], 1)
    ranks = (scores > np.take_along_axis(scores, chosen[:, None], 1)).sum(1, keepdims=True)
    tops = np.take_along_axis(logs, order, 1)
    found, width = case.output(rows * (7 + 2 * top_n)), 7 + 2 * top_n
    case.call("read", case.add_pointers(case.add(scores)), 0, rows, vocabulary, case.add(chosen), top_n, found)
    wanted = np.concatenate((own, own, ranks, ranks), 1)
    limits = np.array([2e-5, 2e-5, 0, 0])
    for row in range(rows):
        place = found + 4 * row * width
        case.expect(place, wanted[row], limits)
        case.expect(place + 4 * 7, order[row], 0)
        case.expect(place + 4 * (7 + top_n), tops[row], np.where(np.isfinite(tops[row]), 2e-5, 0))
        if np.isfinite(logs[row]).all():
            shares = np.exp(logs[row])
            entropy = (shares * logs[row]).sum()
            case.expect(place + 4 * 4, np.array([entropy, (shares * logs[row] ** 2).sum() - entropy**2]), 1e-4)
    return case


def passage_cases() -> Iterator[CaseWriter]:
    """Earlier passages with which a text ends."""
    for count in (1, 2, 9, 40):
        case = CaseWriter(f"passages of {count}")
        text = np.random.default_rng(count).integers(0, 3, count)
        wanted = []
        for place in range(count - 1):
            length = 0
            while length < 5 and length <= place and text[place - length] == text[count - 1 - length]:
                length += 1
            if length >= 2:
                wanted += [place + 1, length]
        found = case.output(2 * count, 8)
        breaks, pairs = case.add(np.zeros(4, np.int8)), len(wanted) // 2
        case.call("passages", case.add(text), count, breaks, 3, 2, 5, found, returns=pairs)
        case.expect(found, np.array(wanted), 0, "int64")
        yield case


def rotary_tables(positions: int, width: int) -> tuple[Array, Array]:
    """Return float32 cosines and sines [positions, width]; those of the first number of each pair are negated."""
    angles = np.arange(positions)[:, None] / 100.0 ** (np.arange(width // 2) / max(width // 2, 1))
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate((cos, cos), 1).astype(np.float32), np.concatenate((-sin, sin), 1).astype(np.float32)


def rotate(heads: Array, cos: Array, sin: Array) -> Array:
    """Rotate float64 heads [tokens, heads, width], whose first `cos.shape[1]` numbers are pairs."""
    turned = cos.shape[1]
    half = turned // 2
    part = heads[..., :turned]
    swapped = np.concatenate((part[..., half:], part[..., :half]), -1)
    return np.concatenate((part * cos[:, None] + swapped * sin[:, None], heads[..., turned:]), -1)


def ragged_attention_cases() -> Iterator[CaseWriter]:
    """Attention over many tokens of several texts."""
    for heads, kv_heads, width, counts, prefixes, last_only in (
        (1, 1, 32, (1,), (0,), 0), (2, 1, 32, (5, 1, 8), (0, 3, 7), 0), (6, 3, 64, (17, 2), (4, 9), 1),
        (4, 4, 96, (3,), (33,), 0),
    ):  # fmt: skip
        case = CaseWriter(f"ragged attention {heads} {kv_heads} {width} {counts} {prefixes}")
        tokens, capacity, texts = sum(counts), max(prefixes) + 2, len(counts)
        joined = _vectors(tokens, (heads + 2 * kv_heads) * width)
        keys, values = _vectors(kv_heads * capacity, width, 2), _vectors(kv_heads * capacity, width, 3)
        cos, sin = rotary_tables(100, width)
        outputs = texts if last_only else tokens
        read = case.output(outputs * heads * width)
        fields: dict[str, Any] = {
            "heads": heads, "kv_heads": kv_heads, "width": width, "scaling": width**-0.5, "texts": texts,
            "last_only": last_only, "threads": 2, "capacity": capacity,
        }  # fmt: skip
        addresses = {
            "cos": case.add(cos), "sin": case.add(sin), "prefix_lengths": case.add(np.array(prefixes)),
            "counts": case.add(np.array(counts)), "joined": case.add(joined), "read": read,
        }  # fmt: skip
        if any(prefixes):
            addresses |= {"keys": case.add(keys), "values": case.add(values)}
        case.call("ragged_attention", case.add_struct((native.RaggedAttentionStruct(**fields), addresses)))
        wanted, start = [], 0
        for count, prefix in zip(counts, prefixes, strict=True):
            own = joined[start : start + count].astype(np.float64).reshape(count, -1, width)
            places = slice(prefix, prefix + count)
            turned = rotate(own[:, : heads + kv_heads], cos[places], sin[places])
            cached = [part.reshape(kv_heads, capacity, width)[:, :prefix].transpose(1, 0, 2) for part in (keys, values)]
            all_keys = np.concatenate((cached[0], turned[:, heads:]))
            all_values = np.concatenate((cached[1], own[:, heads + kv_heads :]))
            found = attend(turned[:, :heads], all_keys, all_values, prefix, width**-0.5)
            wanted.append(found[-1:] if last_only else found)
            start += count
        case.expect(read, np.concatenate(wanted), 2e-5)
        yield case


def attend(queries: Array, keys: Array, values: Array, past: int, scaling: float, window: int = 0) -> Array:
    """Return causal attention, float64 [tokens, heads, width]; `window`: how many tokens each sees, 0 for all."""
    group = queries.shape[1] // keys.shape[1]
    found = np.zeros((*queries.shape[:2], values.shape[2]))
    for i, token in enumerate(queries):
        last = past + i + 1
        first = max(0, last - window) if window else 0
        for head, query in enumerate(token):
            weights = softmax(keys[first:last, head // group] @ query * scaling)
            found[i, head] = weights @ values[first:last, head // group]
    return found


class ReferenceDecoder:
    """A decoder of one or two layers with random weights, and its pass in float64."""

    def __init__(
        self, kind: str = "float32", hidden: int = 64, heads: tuple[int, int] = (2, 1), width: int = 32, wide: int = 96,
        vocabulary: int = 100, layers: int = 2, norm: str = "root_mean_square", act: str = "silu", gated: bool = True,
        window: int = 0, turned: int = -1, head_norms: bool = False, parallel: bool = False,
    ) -> None:  # fmt: skip
        self.kind, self.hidden, (self.heads, self.kv_heads), self.width = kind, hidden, heads, width
        self.wide, self.vocabulary, self.layers, self.norm, self.act = wide, vocabulary, layers, norm, act
        self.gated, self.window, self.head_norms, self.parallel = gated, window, head_norms, parallel
        self.turned = (width // 2 * 2) if turned < 0 else turned
        self.eps = 1e-5

    def name(self) -> str:
        """Return the shape in words."""
        return (
            f"step {self.kind} hidden {self.hidden} heads {self.heads}/{self.kv_heads} of {self.width} "
            f"wide {self.wide} vocabulary {self.vocabulary} {self.norm} {self.act}"
        )

    def _scaled(self, outputs: int, inputs: int, seed: int) -> Weights:
        weights = Weights(self.kind, outputs, inputs, seed)
        if self.kind not in BLOCK_FORMATS and self.kind not in ("int8", "int4"):
            weights.stored, weights.exact = to_kind((weights.exact / np.sqrt(inputs)).astype(np.float32), self.kind)
        return weights

    def _norm_weights(self, width: int, seed: int) -> tuple[Array, Array | None]:
        bias = 0.1 * _vectors(1, width, seed + 50)[0] if self.norm == "layer_norm" else None
        return 1 + 0.1 * _vectors(1, width, seed)[0], bias

    def _place_norm(
        self, case: CaseWriter, path: str, width: int, seed: int, to: dict[str, Offset]
    ) -> native.NormStruct:
        weight, bias = self._norm_weights(width, seed)
        to[f"{path}.weight"] = case.add(weight)
        if bias is not None:
            to[f"{path}.bias"] = case.add(bias)
        return native.NormStruct(kind=native.NORMS[self.norm], eps=self.eps)

    def _matrices(self, layer: int) -> dict[str, Weights]:
        query, shared = self.heads * self.width, self.kv_heads * self.width
        shapes = {
            "project.0": (query, self.hidden), "project.1": (shared, self.hidden), "project.2": (shared, self.hidden),
            "out": (self.hidden, query), "up.0": (self.wide, self.hidden), "up.1": (self.wide, self.hidden),
            "down": (self.hidden, self.wide),
        }  # fmt: skip
        if not self.gated:
            del shapes["up.1"]
        return {path: self._scaled(*shape, 100 * layer + i) for i, (path, shape) in enumerate(shapes.items())}

    def case(self, texts: int, count: int, past: int, keep: int, threads: int = 1, alone: bool = False) -> CaseWriter:
        """Return a pass of `count` tokens of each text behind `past` cached ones; with `alone`, also one by one."""
        case = CaseWriter(f"{self.name()}, {texts} x {count} after {past}")
        keys, values = self._cache(texts, past, count)
        hidden = _vectors(texts * count, self.hidden, 11).reshape(texts, count, self.hidden)
        model = self._place_model(case, past + count)
        cache = [case.add(part) for part in (keys, values)]
        logits = self._call_placed(case, model, hidden, cache, (past, keep, past + count, threads))
        wanted = self._reference(hidden, keys, values, past)[:, count - keep :]
        case.expect(logits, wanted, 3e-4 * np.abs(wanted).max())
        if alone:
            rows, stored = [], (keys.copy(), values.copy())
            places = [case.add(part) for part in stored]
            for token in range(count):
                own = hidden[:, token : token + 1]
                rows.append(self._call_placed(case, model, own, places, (past + token, 1, past + count, 1)))
            size = 4 * self.vocabulary
            for token in range(count - keep, count):
                for text in range(texts):
                    together = logits + (text * keep + token - count + keep) * size
                    case.expect_equal(together, rows[token] + text * size, size)
        return case

    def _cache(self, texts: int, past: int, count: int) -> tuple[Array, Array]:
        shape = (self.layers, texts, self.kv_heads, past + count, self.width)
        found = [np.random.default_rng(seed).standard_normal(shape).astype(np.float32) for seed in (21, 22)]
        for part in found:
            part[:, :, :, past:] = np.nan  # nothing of this is read before it is written
        return found[0], found[1]

    def _call_placed(
        self, case: CaseWriter, model: Offset, hidden: Array, cache: list[Offset], sizes: tuple[int, int, int, int]
    ) -> Offset:
        """Call a pass and return its logits. `sizes`: cached tokens, kept tokens, capacity of the cache, threads."""
        past, keep, capacity, threads = sizes
        texts, count = hidden.shape[:2]
        layer_bytes = 4 * texts * self.kv_heads * capacity * self.width
        pointers = [case.add_pointers(*(own + layer * layer_bytes for layer in range(self.layers))) for own in cache]
        capacities = case.add(np.full(self.layers, capacity))
        logits = case.output(texts * keep * self.vocabulary)
        addresses = {
            "hidden": case.add(hidden), "logits": logits, "old_keys": pointers[0], "old_values": pointers[1],
            "new_keys": pointers[0], "new_values": pointers[1], "old_capacities": capacities,
            "new_capacities": capacities,
        }  # fmt: skip
        fields = {"texts": texts, "count": count, "past": past, "keep": keep, "threads": threads}
        case.call("step", model, case.add_struct((native.PassStruct(**fields), addresses)))
        return logits

    def _place_model(self, case: CaseWriter, positions: int) -> Offset:
        layers = []
        for number in range(self.layers):
            addresses: dict[str, Offset] = {}
            layer = native.LayerStruct(
                projections=3, ups=1 + self.gated, gated=self.gated, window=self.window, rope=0 if self.turned else -1,
                residual_scale=1.0, parallel=self.parallel,
            )  # fmt: skip
            layer.norm = self._place_norm(case, "norm", self.hidden, 300 + number, addresses)
            if not self.parallel:
                layer.norm_mlp = self._place_norm(case, "norm_mlp", self.hidden, 310 + number, addresses)
            if self.head_norms:
                layer.q_norm = self._place_norm(case, "q_norm", self.width, 320 + number, addresses)
                layer.k_norm = self._place_norm(case, "k_norm", self.width, 330 + number, addresses)
            for path, weights in self._matrices(number).items():
                matrix, own = weights.place(case)
                name, _, index = path.partition(".")
                if index:
                    getattr(layer, name)[int(index)] = matrix
                else:
                    setattr(layer, name, matrix)
                addresses |= {f"{path}.{field}": place for field, place in own.items()}
            layers.append((layer, addresses))
        cos, sin = rotary_tables(positions, self.turned)
        table = native.RotaryTableStruct(turned=self.turned)
        query = self.heads * self.width
        model = native.ModelStruct(
            layers=self.layers, hidden=self.hidden, heads=self.heads, kv_heads=self.kv_heads, width=self.width,
            act=native.ACTIVATIONS[self.act], scaling=self.width**-0.5, logit_scale=1.0,
            layout=native.HeadLayoutStruct(
                query // self.kv_heads, query, query + self.kv_heads * self.width, self.width
            ),
        )  # fmt: skip
        addresses = {
            "layer": case.add_struct(*layers),
            "rotary": case.add_struct((table, {"cos": case.add(cos), "sin": case.add(sin)})),
        }
        model.norm = self._place_norm(case, "norm", self.hidden, 340, addresses)
        model.head, own = self._scaled(self.vocabulary, self.hidden, 999).place(case)
        addresses |= {f"head.{field}": place for field, place in own.items()}
        return case.add_struct((model, addresses))

    def _multiply(self, weights: Weights, of: Array) -> Array:
        if self.kind in BLOCK_FORMATS:
            of = round_to_blocks(of)
        found: Array = of @ weights.exact.T
        return found

    def _reference(self, hidden: Array, keys: Array, values: Array, past: int) -> Array:
        """Return float64 logits [texts, count, vocabulary]."""
        found = []
        for text, own in enumerate(hidden.astype(np.float64)):
            state = own
            for layer in range(self.layers):
                state = self._layer(state, layer, keys[layer, text], values[layer, text], past)
            normed = normalize(self.norm, state, *self._norm_weights(self.hidden, 340), self.eps)
            found.append(self._multiply(self._scaled(self.vocabulary, self.hidden, 999), normed))
        return np.stack(found)

    def _layer(self, state: Array, layer: int, keys: Array, values: Array, past: int) -> Array:
        matrices, count = self._matrices(layer), len(state)
        normed = normalize(self.norm, state, *self._norm_weights(self.hidden, 300 + layer), self.eps)
        parts = [self._multiply(matrices[f"project.{i}"], normed).reshape(count, -1, self.width) for i in range(3)]
        if self.head_norms:
            for i, seed in ((0, 320), (1, 330)):
                parts[i] = normalize(self.norm, parts[i], *self._norm_weights(self.width, seed + layer), self.eps)
        cos, sin = rotary_tables(past + count, self.turned)
        queries, own_keys = (rotate(part, cos[past:], sin[past:]) for part in parts[:2])
        all_keys = np.concatenate((keys[:, :past].transpose(1, 0, 2), own_keys))
        all_values = np.concatenate((values[:, :past].transpose(1, 0, 2), parts[2]))
        read = attend(queries, all_keys, all_values, past, self.width**-0.5, self.window).reshape(count, -1)
        after = state + self._multiply(matrices["out"], read)
        if not self.parallel:
            normed = normalize(self.norm, after, *self._norm_weights(self.hidden, 310 + layer), self.eps)
        wide = self._multiply(matrices["up.0"], normed)
        bent = ACTIVATIONS[self.act](wide)
        if self.gated:
            bent = bent * self._multiply(matrices["up.1"], normed)
        return after + self._multiply(matrices["down"], bent)


def step_cases() -> Iterator[CaseWriter]:
    """Passes of decoders with odd shapes; a pass of several tokens equals passes of one, to the last bit."""
    for width in _ODD_SIZES:
        yield ReferenceDecoder(width=width, heads=(1, 1), vocabulary=1, hidden=33, wide=50).case(1, 3, 0, 3, alone=True)
        yield ReferenceDecoder(width=width, heads=(6, 2), hidden=48).case(2, 2, 5, 1, alone=True)
    for act in native.ACTIVATIONS:
        yield ReferenceDecoder(act=act, gated=act == "silu", norm="layer_norm", wide=70).case(1, 2, 3, 2)
    for count in range(1, 18):
        yield ReferenceDecoder(hidden=65, wide=129, vocabulary=77).case(1, count, 4, count, threads=2, alone=True)
    for kind in ("bfloat16", "float16"):
        yield ReferenceDecoder(kind, hidden=50, width=20, wide=90).case(1, 5, 6, 5, alone=True)
    yield ReferenceDecoder(window=4).case(2, 3, 9, 3, alone=True)
    yield ReferenceDecoder(window=1, turned=0).case(1, 4, 2, 4)
    yield ReferenceDecoder(turned=12, head_norms=True, heads=(4, 4)).case(1, 4, 300, 2, threads=2, alone=True)
    yield ReferenceDecoder(parallel=True, gated=False, act="gelu_erf", norm="layer_norm").case(3, 1, 0, 1)
    yield ReferenceDecoder(hidden=1, wide=1, width=1, heads=(1, 1), vocabulary=2, norm="layer_norm", turned=0).case(
        1, 2, 1, 1
    )


def all_cases() -> Iterator[CaseWriter]:
    """Yield every case."""
    for cases in (
        float_product_cases, float_spoiled_cases, block_product_cases, small_integer_cases, row_cases,
        many_vector_cases, norm_cases, score_cases, passage_cases, ragged_attention_cases, step_cases,
    ):  # fmt: skip
        yield from cases()


def write_cases(path: Path) -> int:
    """Write all cases; return their number."""
    encoded = [case.encoded() for case in all_cases()]
    path.write_bytes(_text(MAGIC) + _numbers(len(encoded)) + b"".join(encoded))
    return len(encoded)


if __name__ == "__main__":
    print(f"{write_cases(Path(sys.argv[1]))} cases are written.")
