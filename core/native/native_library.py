"""The built library, once it is there: opened with its first use, its functions with their types."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import stat
import sys
from ctypes import POINTER, c_double, c_int64, c_void_p
from pathlib import Path

from core.common.former_name import read_variable

SOURCE = Path(__file__).parent / "source"
MAIN_SOURCE = SOURCE / "decodescope.cpp"
FLAGS = (
    "-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
    "-fvisibility=hidden", "-shared", "-fPIC",
)  # fmt: skip
SWITCH_VARIABLE = "DECODESCOPE_QUICK_STEP"
"""In the environment: 0 leaves what is built unused, and builds nothing."""
_COMPILERS = ("g++", "clang++", "c++")


def library_folder() -> Path:
    """In the folder for what can be found out again."""
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if os.name == "nt" else None)
    return (Path(base) if base else Path.home() / ".cache") / "decodescope" / "native"


def find_compiler() -> str | None:
    """The C++ compiler of this machine that knows the vectors which the source is written with."""
    return next((found for name in _COMPILERS if (found := shutil.which(name))), None)


def library_path() -> Path | None:
    """The library for this program on this processor, whether it is there or not; None where it is switched off."""
    if read_variable(SWITCH_VARIABLE) == "0" or os.name == "nt":
        return None
    return library_folder() / f"step-{_digest()}.so"


@functools.cache
def _digest() -> str:
    digest = hashlib.sha256(" ".join((*FLAGS, platform.machine(), _processor())).encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:24]


def _processor() -> str:
    """What its code may use: a home folder may be shared by machines that differ."""
    if sys.platform != "linux":
        return platform.processor()
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as cpuinfo:
        lines = (line.partition(":") for line in cpuinfo)
        known = {name.strip(): value.strip() for name, _, value in lines}
    return " ".join(known.get(name, "") for name in ("model name", "flags", "Features", "CPU part"))


def is_private(path: Path) -> bool:
    """Whether file and folder belong to this user and nobody else may write to them: it is going to be executed."""
    if os.name != "posix":
        return True
    kept = (path.parent.stat(), path.stat())
    return all(one.st_uid == os.getuid() and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in kept)


NORMS = {"none": 0, "root_mean_square": 1, "layer_norm": 2}
WEIGHTS = {"float32": 0, "bfloat16": 1, "int8": 2, "float16": 3, "int4": 4}
ACTIVATIONS = {"silu": 0, "gelu_tanh": 1, "gelu_erf": 2, "relu": 3}


class NormStruct(ctypes.Structure):
    """Weight and bias [width] in float32."""

    _fields_ = (("kind", c_int64), ("weight", c_void_p), ("bias", c_void_p), ("eps", c_double))


class MatrixStruct(ctypes.Structure):
    """Weights [outputs, inputs] of a kind of WEIGHTS, row behind row; float32 bias [outputs]; scales
    of int8, float32 [outputs], or of int4, bfloat16 [outputs, 2, groups], offsets among them. Of floats `in_panels`:
    weights [panels, inputs, rows of a panel]."""

    _fields_ = (
        ("kind", c_int64), ("outputs", c_int64), ("inputs", c_int64), ("weights", c_void_p), ("bias", c_void_p),
        ("scales", c_void_p), ("sums", c_void_p), ("in_panels", c_int64),
    )  # fmt: skip


class LayerStruct(ctypes.Structure):
    """One layer."""

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
        ("turned", c_int64),
        ("cos", c_void_p),
        ("sin", c_void_p),
    )


class ModelStruct(ctypes.Structure):
    """A whole decoder behind its embedding."""

    _fields_ = (
        ("layers", c_int64), ("hidden", c_int64), ("heads", c_int64), ("kv_heads", c_int64), ("width", c_int64),
        ("act", c_int64), ("rounds", c_int64), ("scaling", c_double), ("logit_cap", c_double),
        ("layer", POINTER(LayerStruct)), ("norm", NormStruct), ("head", MatrixStruct),
    )  # fmt: skip


class PassStruct(ctypes.Structure):
    """One pass over a few tokens: sizes, what goes in, what comes out, where keys and values lie."""

    _fields_ = (
        ("texts", c_int64), ("count", c_int64), ("past", c_int64), ("keep", c_int64), ("threads", c_int64),
        ("hidden", c_void_p), ("logits", c_void_p), ("old_keys", c_void_p), ("old_values", c_void_p),
        ("new_keys", c_void_p), ("new_values", c_void_p), ("old_places", c_void_p), ("new_places", c_void_p),
        ("mask", c_void_p), ("positions", c_void_p),
    )  # fmt: skip


class RaggedAttentionStruct(ctypes.Structure):
    """What the heads of a layer read in a pass over many tokens of several texts, each behind what it keeps of one."""

    _fields_ = (
        ("heads", c_int64), ("kv_heads", c_int64), ("width", c_int64), ("scaling", c_double), ("q_norm", NormStruct),
        ("k_norm", NormStruct), ("cos", c_void_p), ("sin", c_void_p), ("texts", c_int64), ("last_only", c_int64),
        ("threads", c_int64), ("places", c_int64), ("kept", c_void_p), ("counts", c_void_p), ("keys", c_void_p),
        ("values", c_void_p), ("joined", c_void_p), ("read", c_void_p),
    )  # fmt: skip


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
