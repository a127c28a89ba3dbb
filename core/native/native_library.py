"""The compiled native library: opened on first use, with typed functions."""

from __future__ import annotations

import ctypes
import logging
import os
import stat
from ctypes import POINTER, c_double, c_int64, c_uint64, c_void_p
from pathlib import Path

from decodescope.core.native.library_choice import LibraryChoice, choose_library, is_intact


def is_private(path: Path) -> bool:
    """Return whether file and folder belong to this user and no other user may write to them, because the file is
    executed.
    """
    if os.name != "posix":
        return True
    stats = (path.parent.stat(), path.stat())
    return all(one.st_uid == os.getuid() and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in stats)


NORMS = {"none": 0, "root_mean_square": 1, "layer_norm": 2}
WEIGHTS = {
    "float32": 0, "bfloat16": 1, "int8": 2, "float16": 3, "int4": 4,
    "F32": 0, "F16": 3, "BF16": 1, "Q4_0": 258, "Q4_1": 259, "Q5_0": 262, "Q5_1": 263, "Q8_0": 264, "Q2_K": 266,
    "Q3_K": 267, "Q4_K": 268, "Q5_K": 269, "Q6_K": 270, "IQ4_NL": 276, "IQ4_XS": 279,
}  # fmt: skip
"""Kinds of weights: those of this program, and by their names in GGUF files; block formats are 256 + ggml's type id."""
ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "gelu_erf": 2, "relu": 3}
LAYOUTS = {"row_major": 0, "in_panels": 1, "column_major": 2}
"""Order of float weights: [outputs, inputs]; [panels, inputs, rows of a panel]; [inputs, outputs]."""


class NormStruct(ctypes.Structure):
    """A norm with float32 weight and bias [width]."""

    _fields_ = (("kind", c_int64), ("weight", c_void_p), ("bias", c_void_p), ("eps", c_double))


class LowRankStruct(ctypes.Structure):
    """Change of `outputs` outputs of a matrix from `first` on by adapters: gain · Wx + up (down x) + bias, with
    float32 down [rank, inputs], up [rank, outputs], gain [outputs] and bias [outputs]. A rank of 0 changes nothing.
    """

    _fields_ = (
        ("first", c_int64), ("outputs", c_int64), ("rank", c_int64), ("down", c_void_p), ("up", c_void_p),
        ("gain", c_void_p), ("bias", c_void_p),
    )  # fmt: skip


class MatrixStruct(ctypes.Structure):
    """A matrix of weights [outputs, inputs] of a kind in WEIGHTS, with a float32 bias [outputs] and the parts that
    adapters change.

    Scales: float32 [outputs] for int8; bfloat16 [outputs, 2, groups], including offsets, for int4. Float weights may
    have another of the LAYOUTS.
    """

    _fields_ = (
        ("kind", c_int64), ("outputs", c_int64), ("inputs", c_int64), ("weights", c_void_p), ("bias", c_void_p),
        ("scales", c_void_p), ("sums", c_void_p), ("layout", c_int64), ("low_ranks", c_int64),
        ("low_rank", c_void_p),
    )  # fmt: skip


class MixtureStruct(ctypes.Structure):
    """The experts of a layer; `up` [experts, ups] and `down` [experts] are arrays of matrices."""

    _fields_ = (
        ("experts", c_int64), ("chosen", c_int64), ("normalized", c_int64), ("router", MatrixStruct),
        ("up", POINTER(MatrixStruct)), ("down", POINTER(MatrixStruct)),
    )  # fmt: skip


class LayerStruct(ctypes.Structure):
    """One decoder layer."""

    _fields_ = (
        ("norm", NormStruct),
        ("q_norm", NormStruct),
        ("k_norm", NormStruct),
        ("norm_out", NormStruct),
        ("norm_mlp", NormStruct),
        ("norm_mlp_out", NormStruct),
        ("projections", c_int64),
        ("project", MatrixStruct * 3),
        ("out", MatrixStruct),
        ("ups", c_int64),
        ("up", MatrixStruct * 2),
        ("down", MatrixStruct),
        ("gated", c_int64),
        ("parallel", c_int64),
        ("window", c_int64),
        ("rope", c_int64),
        ("joint_heads", c_int64),
        ("norms_sums", c_int64),
        ("residual_scale", c_double),
        ("mixture", MixtureStruct),
    )


class RotaryTableStruct(ctypes.Structure):
    """float32 cos and signed sin [positions, turned] of the positions from `first` on."""

    _fields_ = (
        ("cos", c_void_p), ("sin", c_void_p), ("turned", c_int64), ("first", c_int64), ("adjacent", c_int64),
    )  # fmt: skip


class HeadLayoutStruct(ctypes.Structure):
    """The places of the heads in a token's joined queries, keys and values, in numbers."""

    _fields_ = (("next_group", c_int64), ("keys", c_int64), ("values", c_int64), ("next_key", c_int64))


class ModelStruct(ctypes.Structure):
    """A decoder without its embedding; caps are 0 for none. `key_bias`: float32 [heads, key_biases]."""

    _fields_ = (
        ("layers", c_int64), ("hidden", c_int64), ("heads", c_int64), ("kv_heads", c_int64), ("width", c_int64),
        ("act", c_int64), ("rounds", c_int64), ("scaling", c_double), ("attention_cap", c_double),
        ("logit_scale", c_double), ("logit_cap", c_double), ("layout", HeadLayoutStruct),
        ("layer", POINTER(LayerStruct)), ("rotary", POINTER(RotaryTableStruct)), ("key_bias", c_void_p),
        ("key_biases", c_int64), ("norm", NormStruct), ("narrow", MatrixStruct), ("head", MatrixStruct),
    )  # fmt: skip


class PassStruct(ctypes.Structure):
    """One pass over a few tokens: sizes, inputs, outputs, and the addresses of keys and values."""

    _fields_ = (
        ("texts", c_int64), ("count", c_int64), ("past", c_int64), ("keep", c_int64), ("threads", c_int64),
        ("hidden", c_void_p), ("logits", c_void_p), ("old_keys", c_void_p), ("old_values", c_void_p),
        ("new_keys", c_void_p), ("new_values", c_void_p), ("old_capacities", c_void_p), ("new_capacities", c_void_p),
        ("mask", c_void_p), ("positions", c_void_p),
    )  # fmt: skip


class RaggedAttentionStruct(ctypes.Structure):
    """Inputs and outputs of one layer's attention over many tokens of several texts, each with its own cached keys."""

    _fields_ = (
        ("heads", c_int64), ("kv_heads", c_int64), ("width", c_int64), ("scaling", c_double), ("q_norm", NormStruct),
        ("k_norm", NormStruct), ("cos", c_void_p), ("sin", c_void_p), ("texts", c_int64), ("last_only", c_int64),
        ("threads", c_int64), ("capacity", c_int64), ("prefix_lengths", c_void_p), ("counts", c_void_p),
        ("keys", c_void_p), ("values", c_void_p), ("joined", c_void_p), ("read", c_void_p),
    )  # fmt: skip


log = logging.getLogger(__name__)

VERSION = 14
"""Version of the functions below; a library of another version is not used."""
MAX_WITH_GIL = 2**16
"""Number of values that are read without releasing the GIL, which takes some 50 µs; another thread that paints would
keep the GIL for a millisecond once it has it.
"""


class NativeLibrary:
    """The functions of `source/decodescope.cpp`. Pointers are addresses of contiguous memory.

    Every method may raise MemoryError.
    """

    def __init__(self, path: Path) -> None:
        """Open the library. Raises OSError if it cannot be opened or has another version."""
        loaded, at_once = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        loaded.decodescope_version.restype = c_int64
        if loaded.decodescope_version() != VERSION:
            raise OSError(f"{path.name} is of another version")
        self.vector_offset = int(loaded.decodescope_shift())
        """Offset that makes the 8-bit numbers of a vector unsigned; 0 if they may be signed."""
        self.supports_float16 = bool(loaded.decodescope_halves())
        """Whether the processor converts float16 weights itself; otherwise they are slow."""
        self.panel_rows = int(loaded.decodescope_panel())
        """Number of adjacent matrix rows in the panel layout."""
        self._multiply_blocks, self._rows = loaded.decodescope_multiply_blocks, loaded.decodescope_rows
        self._multiply_blocks.argtypes = (POINTER(MatrixStruct), c_void_p, c_int64, c_void_p, c_int64)
        self._rows.argtypes = (POINTER(MatrixStruct), c_void_p, c_int64, c_void_p)
        self._step, self._multiply, self._stats = (
            loaded.decodescope_step, loaded.decodescope_multiply, loaded.decodescope_read,
        )  # fmt: skip
        self._step.argtypes = (POINTER(ModelStruct), POINTER(PassStruct))
        self._multiply.argtypes = (POINTER(MatrixStruct), c_void_p, c_void_p, c_int64, c_void_p, c_int64)
        self._stats.argtypes = (c_void_p, c_int64, c_int64, c_int64, c_void_p, c_int64, c_void_p)
        self._stats_with_gil = at_once.decodescope_read
        self._stats_with_gil.argtypes = self._stats.argtypes
        self._ragged_attention = loaded.decodescope_ragged_attention
        self._ragged_attention.argtypes = (POINTER(RaggedAttentionStruct),)
        self._product, self._gated = loaded.decodescope_product, loaded.decodescope_gated
        self._product.argtypes = (POINTER(MatrixStruct), c_void_p, c_int64, c_void_p, c_int64, c_int64, c_int64)
        self._gated.argtypes = (POINTER(MatrixStruct), POINTER(MatrixStruct), c_void_p, c_int64, c_void_p, c_int64)
        for function in (
            self._step,
            self._multiply,
            self._multiply_blocks,
            self._stats,
            self._stats_with_gil,
            self._ragged_attention,
            self._product,
            self._gated,
        ):
            function.restype = c_int64
        self._norm, self._choices = loaded.decodescope_norm, loaded.decodescope_choices
        self._norm.argtypes = (c_void_p, POINTER(NormStruct), c_int64, c_int64, c_void_p)
        self._choices.argtypes = (c_void_p, c_int64, c_int64, c_void_p, c_void_p)
        for nothing in (self._norm, self._choices, self._rows):
            nothing.restype = None
        self.samplers = SamplerFunctions(at_once)
        self.page_guard = PageGuard(at_once)

    def step(self, model: ModelStruct, pass_struct: PassStruct) -> None:
        """Run the model: write the logits and append the tokens to keys and values."""
        _check(self._step(model, pass_struct))

    def multiply(
        self, matrix: MatrixStruct, halves: int, steps: int, rows: int, output_address: int, threads: int
    ) -> None:
        """Multiply split vectors, int8 [2 · rows, inputs] and float32 steps [rows], into float32 [rows, outputs]."""
        _check(self._multiply(matrix, halves, steps, rows, output_address, threads))

    def multiply_blocks(self, matrix: MatrixStruct, vectors: int, rows: int, found: int, threads: int) -> None:
        """Multiply float32 vectors [rows, inputs] by a matrix of any kind into float32 [rows, outputs].

        For matrices in block formats the vectors are quantized to 8 bits in blocks of 32 numbers.
        """
        _check(self._multiply_blocks(matrix, vectors, rows, found, threads))

    def matrix_rows(self, matrix: MatrixStruct, ids: int, count: int, found: int) -> None:
        """Write the rows with the int64 indices `ids` [count] of a row-major matrix of floats or blocks as float32
        [count, inputs]. The indices are not checked.
        """
        self._rows(matrix, ids, count, found)

    def compute_stats(
        self, scores: list[int], rows: int, vocabulary: int, chosen: int, top_n: int, output_address: int
    ) -> None:
        """Compute the statistics of `rows` steps.

        `scores` are float32 [rows, vocabulary] before the first stage and after each stage, `chosen` int64 [rows],
        `output_address` float32 [rows, `columns`].
        """
        pointers = (c_void_p * len(scores))(*scores)
        read = self._stats_with_gil if len(scores) * rows * vocabulary <= MAX_WITH_GIL else self._stats
        _check(read(pointers, len(scores) - 1, rows, vocabulary, chosen, top_n, output_address))

    def ragged_attention(self, attention: RaggedAttentionStruct) -> None:
        """Compute a layer's attention for many tokens of several texts; queries and keys are rotated in place."""
        _check(self._ragged_attention(attention))

    def norm(self, hidden: int, norm: NormStruct, shape: tuple[int, ...], output_address: int) -> None:
        """Normalize float32 hidden [rows, width]."""
        self._norm(hidden, norm, *shape, output_address)

    def matmul(
        self,
        matrix: MatrixStruct,
        vectors: int,
        rows: int,
        output_address: int,
        row_stride: int,
        accumulate: bool,
        threads: int,
    ) -> None:
        """Multiply float32 vectors [rows, inputs] by a float32 matrix into [rows, outputs].

        `row_stride` is the distance of the output rows in numbers; the result is added to the output if `accumulate`.
        """
        _check(self._product(matrix, vectors, rows, output_address, row_stride, accumulate, threads))

    def gated_matmul(
        self, gate: MatrixStruct, up: MatrixStruct, vectors: int, rows: int, output_address: int, threads: int
    ) -> None:
        """Compute float32 silu(gate) · up [rows, outputs], where both are such products."""
        _check(self._gated(gate, up, vectors, rows, output_address, threads))

    def top_choices(self, scores: int, shape: tuple[int, ...], chosen: int, output_address: int) -> None:
        """Write float32 [rows, 4]: first choice, its probability, the chosen token's probability and rank; for float32
        scores [rows, vocabulary] and int64 tokens [rows].
        """
        self._choices(scores, *shape, chosen, output_address)


class SamplerFunctions:
    """The functions that samplers use: `source/samplers.h`. None of them releases the GIL."""

    def __init__(self, loaded: ctypes.CDLL) -> None:
        self._spread, self._likely = loaded.decodescope_spread, loaded.decodescope_likely
        self._parts, self._passages = loaded.decodescope_parts, loaded.decodescope_passages
        self._spread.argtypes = (c_void_p, c_int64, c_int64, c_void_p)
        self._likely.argtypes = (c_void_p, c_int64, c_double, c_int64, c_void_p, c_void_p)
        self._parts.argtypes = (c_void_p, c_int64, c_double, c_double, c_int64, c_void_p)
        self._passages.argtypes = (c_void_p, c_int64, c_void_p, c_int64, c_int64, c_int64, c_void_p)
        self._spread.restype = self._parts.restype = None
        self._likely.restype = self._passages.restype = c_int64

    def score_stats(self, scores: int, rows: int, vocabulary: int, output_address: int) -> None:
        """Write float64 [rows, 6] for float32 scores [rows, vocabulary]: maximum, minimum, logsumexp, entropy in nats,
        count and standard deviation of the finite scores of each row.
        """
        self._spread(scores, rows, vocabulary, output_address)

    def likely_tokens(
        self, scores: int, vocabulary: int, threshold: float, max_count: int, tokens: int, output_address: int
    ) -> int:
        """Write the int64 tokens and float32 probabilities of at most `max_count` tokens above `threshold`, likeliest
        first; return their number. `scores`: float32 [vocabulary].
        """
        count = int(self._likely(scores, vocabulary, threshold, max_count, tokens, output_address))
        _check(count < 0)
        return count

    def histogram(
        self, scores: int, vocabulary: int, ends: tuple[float, float], parts: int, output_address: int
    ) -> None:
        """Write an int64 histogram [parts] of the finite float32 scores [vocabulary] between the two `ends`."""
        self._parts(scores, vocabulary, *ends, parts, output_address)

    def repeated_passages(
        self, text: int, count: int, breaks: tuple[int, int], lengths: tuple[int, int], output_address: int
    ) -> int:  # fmt: skip
        """Write int64 (position, length) of each earlier passage with which int64 `text` [count] ends; return their
        number.

        Passages have at least the minimum length and are followed up to the maximum. Return -1 if it is not known
        whether a token ends a passage. `breaks`: address of int8 [vocabulary + 1] per token (negative: unknown; the
        last entry is for ids that are not tokens), and the vocabulary size.
        """
        return int(self._passages(text, count, *breaks, *lengths, output_address))


class PageGuard:
    """The functions that replace lost pages of mapped files by zeros, where the process would end by a signal:
    `source/page_guard.h`.
    """

    def __init__(self, loaded: ctypes.CDLL) -> None:
        self._guard, self._has_lost = loaded.decodescope_guard_pages, loaded.decodescope_has_lost_pages
        self._release = loaded.decodescope_release_pages
        self._guard.argtypes, self._guard.restype = (c_uint64, c_uint64), c_int64
        self._has_lost.argtypes, self._has_lost.restype = (c_int64,), c_int64
        self._release.argtypes, self._release.restype = (c_int64,), None

    def guard(self, address: int, length: int) -> int:
        """Guard the pages of a mapping of `length` bytes, a multiple of the page size; return the number of the range,
        or 0 if it cannot be guarded.
        """
        return int(self._guard(address, length))

    def has_lost_pages(self, guarded: int) -> bool:
        """Return whether pages of a guarded range were lost, and read as zeros since."""
        return bool(self._has_lost(guarded))

    def release(self, guarded: int) -> None:
        """End the guard of a range. Must be called before its pages are unmapped."""
        self._release(guarded)


def _check(failed: int) -> None:
    if failed:
        raise MemoryError


class _LibraryHolder:
    """Holds the library of this process, if there is one."""

    def __init__(self) -> None:
        self.is_on = True
        self.library: NativeLibrary | None = None
        self._refused: frozenset[str] = frozenset()
        """Levels of the program, and paths of compiled libraries, that cannot be opened: they are not tried again."""
        self._opened: LibraryChoice | None = None

    @property
    def choice(self) -> LibraryChoice:
        """The library that is open, or else the one to use."""
        return self._opened or choose_library(self._refused)

    def find(self) -> NativeLibrary | None:
        """Look for the library until it exists."""
        while self.library is None:
            choice = choose_library(self._refused)
            name = choice.level if choice.is_shipped else str(choice.path)
            if choice.path is None or name in self._refused or not choice.path.is_file():
                break
            self.library = _open(choice)
            if self.library is None:
                self._refused |= {name}
            else:
                self._opened = choice
        return self.library


def _open(choice: LibraryChoice) -> NativeLibrary | None:
    """Open a library; None if its bytes are not those that were written, or the system refuses it."""
    assert choice.path is not None
    try:
        if not (is_intact(choice) if choice.is_shipped else is_private(choice.path)):
            log.warning("%s was changed by another user or is damaged; it is not used", choice.path.name)
            return None
        return NativeLibrary(choice.path)
    except (OSError, AttributeError):
        log.info("%s cannot be opened; torch goes through the model", choice.path.name, exc_info=True)
        return None


_HOLDER = _LibraryHolder()


def library() -> NativeLibrary | None:
    """Return the native library if it exists and is enabled. Raises ParameterError as `choose_library` does."""
    return _HOLDER.find() if _HOLDER.is_on else None


def library_choice() -> LibraryChoice:
    """Return which library is used, or would be if it existed. Raises ParameterError as `choose_library` does."""
    return _HOLDER.choice


def is_switched_on() -> bool:
    """Return whether native kernels may be used."""
    return _HOLDER.is_on


def enable_native_steps(on: bool) -> None:
    """Enable or disable native kernels from the next run on; initially enabled."""
    _HOLDER.is_on = on
