"""The built library, once it is there: opened with its first use, its functions with their types."""

from __future__ import annotations

import ctypes
import logging
from ctypes import POINTER, c_double, c_int64, c_void_p
from pathlib import Path

from core.native.build_paths import is_private, library_path
from core.native.structs import MatrixStruct, ModelStruct, NormStruct, PassStruct, RaggedAttentionStruct

log = logging.getLogger(__name__)

VERSION = 8
"""Of the functions below; a library that says otherwise is not used."""
MAX_WITH_GIL = 2**16
"""Numbers that are read without giving up the interpreter's lock: they take some 50 µs, and a thread that draws keeps
the lock for a millisecond once it has it."""


class NativeLibrary:
    """The functions of `source/decodescope.cpp`. Pointers are addresses of contiguous memory.

    Each raises MemoryError.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError where it cannot be opened or is another version."""
        loaded, at_once = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        loaded.decodescope_version.restype = c_int64
        if loaded.decodescope_version() != VERSION:
            raise OSError(f"{path.name} is of another version")
        self.vector_offset = int(loaded.decodescope_shift())
        """What is added to each number of a vector in eight bits, so that it has no sign; 0 where it may have one."""
        self.supports_float16 = bool(loaded.decodescope_halves())
        """Whether it reads weights in float16."""
        self.panel_rows = int(loaded.decodescope_panel())
        """Rows of a matrix that lie side by side where it is kept in panels."""
        self._step, self._multiply, self._stats = (
            loaded.decodescope_step, loaded.decodescope_multiply, loaded.decodescope_read,
        )  # fmt: skip
        self._step.argtypes = (POINTER(ModelStruct), POINTER(PassStruct))
        self._multiply.argtypes = (POINTER(MatrixStruct), c_void_p, c_void_p, c_int64, c_void_p, c_int64)
        self._stats.argtypes = (c_void_p, c_int64, c_int64, c_int64, c_void_p, c_int64, c_void_p)
        self._stats_with_gil = at_once.decodescope_read
        self._stats_with_gil.argtypes = self._stats.argtypes
        self._ragged_attention = loaded.decodescope_beside
        self._ragged_attention.argtypes = (POINTER(RaggedAttentionStruct),)
        self._product, self._gated = loaded.decodescope_product, loaded.decodescope_gated
        self._product.argtypes = (POINTER(MatrixStruct), c_void_p, c_int64, c_void_p, c_int64, c_int64, c_int64)
        self._gated.argtypes = (POINTER(MatrixStruct), POINTER(MatrixStruct), c_void_p, c_int64, c_void_p, c_int64)
        for function in (
            self._step, self._multiply, self._stats, self._stats_with_gil, self._ragged_attention, self._product, self._gated,
        ):  # fmt: skip
            function.restype = c_int64
        self._norm, self._choices = loaded.decodescope_norm, loaded.decodescope_choices
        self._norm.argtypes = (c_void_p, POINTER(NormStruct), c_int64, c_int64, c_void_p)
        self._choices.argtypes = (c_void_p, c_int64, c_int64, c_void_p, c_void_p)
        for nothing in (self._norm, self._choices):
            nothing.restype = None
        self.samplers = SamplerFunctions(at_once)

    def step(self, model: ModelStruct, pass_struct: PassStruct) -> None:
        """Go through the model: logits are written, and keys and values gain the tokens."""
        _check(self._step(model, pass_struct))

    def multiply(self, matrix: MatrixStruct, halves: int, steps: int, rows: int, found: int, threads: int) -> None:
        """float32 [rows, outputs] of split vectors: int8 [2 · rows, inputs], and float32 steps [rows]."""
        _check(self._multiply(matrix, halves, steps, rows, found, threads))

    def compute_stats(self, scores: list[int], rows: int, vocabulary: int, chosen: int, top_n: int, found: int) -> None:
        """Figures of `rows` steps: `scores` are float32 [rows, vocabulary] before the first stage and behind each,
        `chosen` int64 [rows], `found` float32 [rows, `columns`]."""
        pointers = (c_void_p * len(scores))(*scores)
        read = self._stats_with_gil if len(scores) * rows * vocabulary <= MAX_WITH_GIL else self._stats
        _check(read(pointers, len(scores) - 1, rows, vocabulary, chosen, top_n, found))

    def ragged_attention(self, attention: RaggedAttentionStruct) -> None:
        """What a layer's heads read, of many tokens of several texts; queries and keys are turned where they lie."""
        _check(self._ragged_attention(attention))

    def norm(self, hidden: int, norm: NormStruct, shape: tuple[int, ...], found: int) -> None:
        """The norm of float32 hidden [rows, width]."""
        self._norm(hidden, norm, *shape, found)

    def matmul(
        self, matrix: MatrixStruct, vectors: int, rows: int, found: int, row_stride: int, adds: bool, threads: int
    ) -> None:  # fmt: skip
        """float32 [rows, outputs] of vectors [rows, inputs] and a matrix of float32, `row_stride` numbers from one row of
        them to the next; added to what is there where it `adds`."""
        _check(self._product(matrix, vectors, rows, found, row_stride, adds, threads))

    def gated_matmul(
        self, gate: MatrixStruct, up: MatrixStruct, vectors: int, rows: int, found: int, threads: int
    ) -> None:
        """float32 silu(gate) · up [rows, outputs], where both are such products."""
        _check(self._gated(gate, up, vectors, rows, found, threads))

    def top_choices(self, scores: int, shape: tuple[int, ...], chosen: int, found: int) -> None:
        """First choice, its probability, that of the chosen token and its rank, float32 [rows, 4]; of float32 scores
        [rows, vocabulary] and int64 tokens [rows]."""
        self._choices(scores, *shape, chosen, found)


class SamplerFunctions:
    """What samplers ask of scores: `source/samplers.h`. None of it gives up the interpreter's lock."""

    def __init__(self, loaded: ctypes.CDLL) -> None:
        self._spread, self._likely = loaded.decodescope_spread, loaded.decodescope_likely
        self._parts, self._passages = loaded.decodescope_parts, loaded.decodescope_passages
        self._spread.argtypes = (c_void_p, c_int64, c_int64, c_void_p)
        self._likely.argtypes = (c_void_p, c_int64, c_double, c_int64, c_void_p, c_void_p)
        self._parts.argtypes = (c_void_p, c_int64, c_double, c_double, c_int64, c_void_p)
        self._passages.argtypes = (c_void_p, c_int64, c_void_p, c_int64, c_int64, c_int64, c_void_p)
        self._spread.restype = self._parts.restype = None
        self._likely.restype = self._passages.restype = c_int64

    def score_stats(self, scores: int, rows: int, vocabulary: int, found: int) -> None:
        """Greatest, least, log of the sum of exponentials, entropy in nats, count and deviation of the finite ones of
        each row, float64 [rows, 6] of float32 scores [rows, vocabulary]."""
        self._spread(scores, rows, vocabulary, found)

    def likely_tokens(
        self, scores: int, vocabulary: int, threshold: float, max_count: int, tokens: int, found: int
    ) -> int:
        """int64 tokens and float32 shares of those at least so likely, `max_count` at the most, the likeliest first; how
        many there are. `scores`: float32 [vocabulary]."""
        count = int(self._likely(scores, vocabulary, threshold, max_count, tokens, found))
        _check(count < 0)
        return count

    def histogram(self, scores: int, vocabulary: int, ends: tuple[float, float], parts: int, found: int) -> None:
        """int64 [parts]: how many of the finite ones of float32 scores [vocabulary] stand in each equal part between
        the two `ends`."""
        self._parts(scores, vocabulary, *ends, parts, found)

    def repeated_passages(
        self, text: int, count: int, breaks: tuple[int, int], lengths: tuple[int, int], found: int
    ) -> int:  # fmt: skip
        """int64 (place, length) of each earlier passage with which int64 `text` [count] ends, of the least length or
        more and followed to the longest; how many there are, or -1 where nobody knows whether one of its tokens ends a
        passage. `breaks`: where int8 [vocabulary + 1] by token lie (less than 0: nobody knows; the last one is for
        whatever is no token), and the vocabulary."""
        return int(self._passages(text, count, *breaks, *lengths, found))


def _check(failed: int) -> None:
    if failed:
        raise MemoryError


class _LibraryHolder:
    """The one library of this process, or that there is none."""

    def __init__(self) -> None:
        self.is_on = True
        self.library: NativeLibrary | None = None
        self._refused: Path | None = None

    def find(self) -> NativeLibrary | None:
        """Looks for it until it is there; one that cannot be opened is not tried again."""
        if self.library is None:
            path = library_path()
            if path is not None and path != self._refused and path.is_file():
                self._open(path)
        return self.library

    def _open(self, path: Path) -> None:
        try:
            self.library = NativeLibrary(path) if is_private(path) else None
        except (OSError, AttributeError):
            log.info("the built step cannot be opened; torch goes through the model", exc_info=True)
        self._refused = path if self.library is None else None


_HOLDER = _LibraryHolder()


def library() -> NativeLibrary | None:
    """The built library, where it is there and switched on."""
    return _HOLDER.find() if _HOLDER.is_on else None


def is_switched_on() -> bool:
    """Whether what is built may be used."""
    return _HOLDER.is_on


def switch_quick_steps(on: bool) -> None:
    """Use what is built, from the next run on, or leave it; on at first."""
    _HOLDER.is_on = on
