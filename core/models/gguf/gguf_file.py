"""Read the header of GGUF files without trusting it. Importing this module does not import torch.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. A file has a magic number, a version, metadata
(key, type, value), a table of tensors (name, dimensions, type, offset) and, from an aligned position on, their data.
Every count, length, offset and type is checked against the length of the file before it is used, because readers of
this format have had memory faults: a file that passes can be mapped, and no tensor reaches beyond it or overlaps
another. The header is read, not mapped: what was checked cannot change afterwards.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, overload

from decodescope.core.errors import ModelFileError
from decodescope.core.models.gguf.file_names import MAGIC, UnreadableGgufError, split_files
from decodescope.core.models.mapped_files import MappedFile, MappedFiles
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

_VERSIONS = (2, 3)
_MAX_KEY_BYTES = 2**16 - 1
_MAX_NAME_BYTES = 1024
"""Maximum bytes of a tensor's name; llama.cpp itself allows 64."""
_MAX_DIMENSIONS = 4
_MAX_ALIGNMENT = 2**20
DEFAULT_ALIGNMENT = 32
_VOCABULARY_BYTES = 2**15
"""Bytes of a vocabulary by which it is recognized: its type, its size and its first tokens."""
_MAX_SCALAR_TEXT = 2**24
"""Maximum bytes of a single text in the metadata, such as a chat template."""
_PORTION = 2**18
"""Bytes of a header that are read at a time."""


class BlockFormat(NamedTuple):
    """A format of stored numbers: blocks of `block_weights` numbers and `block_bytes` bytes."""

    name: str
    """As llama.cpp writes it: F32, Q8_0, Q4_K …"""
    type_id: int
    """ggml's number of the type."""
    block_weights: int
    block_bytes: int

    def row_bytes(self, inputs: int) -> int:
        """Return the bytes of a row of `inputs` numbers, a multiple of the block's."""
        return inputs // self.block_weights * self.block_bytes


FORMATS: dict[int, BlockFormat] = {
    type_id: BlockFormat(name, type_id, weights, size)
    for type_id, name, weights, size in (
        (0, "F32", 1, 4), (1, "F16", 1, 2), (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20), (6, "Q5_0", 32, 22),
        (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34), (9, "Q8_1", 32, 36), (10, "Q2_K", 256, 84), (11, "Q3_K", 256, 110),
        (12, "Q4_K", 256, 144), (13, "Q5_K", 256, 176), (14, "Q6_K", 256, 210), (15, "Q8_K", 256, 292),
        (16, "IQ2_XXS", 256, 66), (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98), (19, "IQ1_S", 256, 50),
        (20, "IQ4_NL", 32, 18), (21, "IQ3_S", 256, 110), (22, "IQ2_S", 256, 82), (23, "IQ4_XS", 256, 136),
        (24, "I8", 1, 1), (25, "I16", 1, 2), (26, "I32", 1, 4), (27, "I64", 1, 8), (28, "F64", 1, 8),
        (29, "IQ1_M", 256, 56), (30, "BF16", 1, 2), (34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66),
        (39, "MXFP4", 32, 17), (40, "NVFP4", 64, 36), (41, "Q1_0", 128, 18),
    )
}  # fmt: skip
"""The types of ggml.h with a fixed block, by number."""

FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
}  # fmt: skip
"""Names of `general.file_type`, the mixture of types in a file."""


class GgufTensor(NamedTuple):
    """An entry of the tensor table, checked against its file."""

    name: str
    shape: tuple[int, ...]
    """In torch's order, rows first: the last dimension is contiguous."""
    fmt: BlockFormat
    file: Path
    start: int
    """Position of its first byte in the file."""
    nbytes: int

    @property
    def numbers(self) -> int:
        """Number of weights."""
        product = 1
        for size in self.shape:
            product *= size
        return product


class TextArray(Sequence[str]):
    """Texts of a metadata array, decoded when they are read: a vocabulary has up to some hundred thousand."""

    def __init__(self, data: bytes | bytearray, starts: array[int]) -> None:
        self._data, self._starts = data, starts

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        start = self._starts[index]
        (length,) = _U64.unpack_from(self._data, start)
        return bytes(self._data[start + 8 : start + 8 + length]).decode("utf-8", "replace")

    def is_text(self, index: int) -> bool:
        """Return whether an entry is valid UTF-8; what is not is decoded with replacement characters."""
        start = self._starts[index]
        (length,) = _U64.unpack_from(self._data, start)
        try:
            bytes(self._data[start + 8 : start + 8 + length]).decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        if not self._starts:
            return
        first, last = self._starts[0], self._starts[-1]
        end = last + 8 + _U64.unpack_from(self._data, last)[0]
        content = memoryview(self._data)[first:end]
        for start, after in itertools.pairwise(itertools.chain(self._starts, (end,))):  # to where the next text starts
            yield str(content[start - first + 8 : after - first], "utf-8", "replace")


Value: TypeAlias = "int | float | bool | str | TextArray | memoryview"
"""A metadata value; arrays of numbers are views with the numbers' type."""


class GgufFile(NamedTuple):
    """The headers of a model, of all files if it is split. The files stay open as long as this object lives."""

    files: tuple[Path, ...]
    metadata: Mapping[str, Value]
    tensors: Mapping[str, GgufTensor]
    sources: MappedFiles
    """The open files, to be checked before and after their weights are used."""

    @property
    def architecture(self) -> str:
        """llama.cpp's name of the architecture."""
        return str(self.metadata.get("general.architecture", ""))

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    @property
    def numbers(self) -> int:
        """Number of weights in all tensors."""
        return sum(tensor.numbers for tensor in self.tensors.values())

    @property
    def format_name(self) -> str:
        """The file's mixture of types (Q4_K_M), or else the type of most bytes."""
        named = self.metadata.get("general.file_type")
        if isinstance(named, int) and (known := FILE_TYPES.get(named)):
            return known
        totals: dict[str, int] = {}
        for tensor in self.tensors.values():
            totals[tensor.fmt.name] = totals.get(tensor.fmt.name, 0) + tensor.nbytes
        return max(totals, key=totals.__getitem__, default="")

    def data(self, tensor: GgufTensor) -> memoryview:
        """Return the bytes of a tensor, of the mapped file or of a copy in memory (`MappedFiles.view`).

        Raises CorruptWeightsError if the file has changed.
        """
        return self.sources.view(tensor.file, tensor.start, tensor.nbytes)

    def number(self, key: str, default: float | None = None) -> int | float | None:
        """Return a number of the metadata, or the default if there is none under that key."""
        value = self.metadata.get(key)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else default

    def text(self, key: str) -> str | None:
        """Return a text of the metadata, or None."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None


class _InvalidError(Exception):
    """Says what is wrong with a file, as a clause."""


_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""struct's letters of the types of numbers in metadata."""
TEXT, ARRAY = 8, 9
"""Types of texts and of arrays."""
_MIN_ENTRY_BYTES = 8 + 4 + 1
"""Bytes of the shortest metadata entry: an empty key, a type and one byte."""
_MIN_TENSOR_BYTES = 8 + 4 + 4 + 8
"""Bytes of the shortest entry in the tensor table."""


class _Cursor:
    """Reads values from a file, in portions and never beyond its end."""

    def __init__(self, file: MappedFile) -> None:
        self.position, self.end = 0, file.size
        self._file, self._buffer, self._base = file, b"", 0

    def take(self, count: int, what: str) -> bytes:
        """Return the next `count` bytes."""
        start = self.position
        if count > self.end - start:
            raise _InvalidError(
                tr("it ends in the middle of {what} (byte {start:,} of {end:,})").format(
                    what=what, start=start, end=self.end
                )
            )
        self.position = start + count
        if self.position > self._base + len(self._buffer):
            if count >= _PORTION:
                return self._read(start, count)
            self._base, self._buffer = start, self._read(start, min(_PORTION, self.end - start))
        return self._buffer[start - self._base : start - self._base + count]

    def peek(self, limit: int) -> bytes:
        """Return at most `limit` of the next bytes, without advancing."""
        return self._read(self.position, min(limit, self.end - self.position))

    def _read(self, start: int, count: int) -> bytes:
        buffer = bytearray(count)
        self._file.read(start, memoryview(buffer))
        return bytes(buffer)

    def u32(self, what: str) -> int:
        """Read a number of 32 bits."""
        return int(_U32.unpack(self.take(4, what))[0])

    def u64(self, what: str) -> int:
        """Read a number of 64 bits."""
        return int(_U64.unpack(self.take(8, what))[0])

    def count(self, what: str, each: int) -> int:
        """Read how many entries follow, of which each takes at least `each` bytes."""
        found = self.u64(what)
        if found > (self.end - self.position) // each:
            raise _InvalidError(
                tr("it claims {found:,} {what}, more than its {end:,} bytes can hold").format(
                    found=found, what=what, end=self.end
                )
            )
        return found

    def text(self, what: str, limit: int) -> str:
        """Read a text of at most `limit` bytes."""
        length = self.u64(what)
        if length > limit:
            raise _InvalidError(
                tr("{what} has {length:,} bytes, more than the {limit:,} allowed").format(
                    what=what, length=length, limit=limit
                )
            )
        content = self.take(length, what)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            raise _InvalidError(tr("{what} is not text (UTF-8)").format(what=what)) from None

    def value(self, key: str, kind: int | None = None) -> Value:
        """Read a type, unless it was read, and a value of that type."""
        kind = self.u32(key) if kind is None else kind
        if letter := NUMBERS.get(kind):
            return self._number(letter, key)
        if kind == TEXT:
            return self.text(key, _MAX_SCALAR_TEXT)
        if kind == ARRAY:
            return self._array(key)
        raise _InvalidError(tr("{key} has the unknown type {kind}").format(key=key, kind=kind))

    def _number(self, letter: str, key: str) -> int | float | bool:
        content = self.take(struct.calcsize(letter), key)
        if letter == "?":
            return content != b"\0"
        (number,) = struct.unpack("<" + letter, content)
        found: int | float = number
        return found

    def _array(self, key: str) -> TextArray | memoryview:
        kind = self.u32(key)
        if kind == TEXT:
            return self._text_array(key)
        letter = NUMBERS.get(kind)
        if letter is None:
            what = tr("arrays") if kind == ARRAY else tr("values of the unknown type {kind}").format(kind=kind)
            raise _InvalidError(tr("{key} is an array of {what}, which nothing reads").format(key=key, what=what))
        size = struct.calcsize(letter)
        count = self.count(key, size)
        view: Any = memoryview(self.take(count * size, key))
        found: memoryview = view.cast(letter)
        return found

    def _text_array(self, key: str) -> TextArray:
        count = self.count(key, 8)
        begin, content, unpack = self.position, bytearray(), _U64.unpack_from
        starts = array("I" if self.end - begin < 2**32 else "Q")
        position = 0
        for _ in range(count):
            if position + 8 > len(content):
                self._extend(content, begin, position, 8, key)
            starts.append(position)
            (length,) = unpack(content, position)
            position += 8
            if position + length > len(content):
                self._extend(content, begin, position, length, key)
            position += length
        del content[position:]
        self.position = begin + position
        return TextArray(content, starts)

    def _extend(self, content: bytearray, begin: int, position: int, count: int, what: str) -> None:
        """Read on until `content`, which begins at `begin`, includes `count` bytes from its `position` on."""
        self.position = begin + position
        if count > self.end - self.position:
            self.take(count, what)
        last = min(self.end, max(self.position + count, begin + len(content) + _PORTION))
        content += self._read(begin + len(content), last - begin - len(content))


def read_gguf(path: Path) -> GgufFile:
    """Read and check the headers of a model, all parts if it is split, and map its files.

    Raises CorruptWeightsError for a file that is damaged, incomplete or of another version, ModelFileError for one that
    cannot be opened.
    """
    files = split_files(path)
    sources = _opened(files)
    metadata: dict[str, Value] = {}
    tensors: dict[str, GgufTensor] = {}
    for number, file in enumerate(files):
        own, entries = _read_one(sources.files[file])
        if len(files) > 1:
            _check_split(file, own, number, len(files))
        metadata = metadata or own
        for entry in entries:
            if entry.name in tensors:
                raise UnreadableGgufError(file, tr("the tensor {name} is there twice").format(name=entry.name))
            tensors[entry.name] = entry
    if not isinstance(metadata.get("general.architecture"), str):
        raise UnreadableGgufError(files[0], tr("it does not name its architecture (general.architecture)"))
    expected = metadata.get("split.tensors.count")
    if len(files) > 1 and isinstance(expected, int) and expected != len(tensors):
        raise UnreadableGgufError(
            files[0],
            tr("its parts have {count:,} tensors instead of {expected:,}").format(
                count=len(tensors), expected=expected
            ),
        )
    return GgufFile(files, metadata, tensors, sources)


def read_summary(path: Path) -> Mapping[str, Value]:
    """Return the metadata before the vocabulary, which is enough to describe a model in a list and takes a millisecond.

    Raises CorruptWeightsError, ModelFileError.
    """
    cursor, metadata = _cursor(path), dict[str, Value]()
    try:
        _, entries = _read_counts(cursor)
        for _ in range(entries):
            key = cursor.text(tr("a key"), _MAX_KEY_BYTES)
            if key.startswith("tokenizer.ggml."):
                break
            value = cursor.value(key)
            if not isinstance(value, (TextArray, memoryview)):
                metadata[key] = value
    except _InvalidError as error:
        raise UnreadableGgufError(path, str(error)) from None
    return metadata


def hash_vocabulary(path: Path) -> bytes:
    """Return a hash of the number of tokens and of the first of them; empty without a vocabulary. Takes a millisecond.

    Raises CorruptWeightsError, ModelFileError.
    """
    cursor = _cursor(path)
    try:
        _, entries = _read_counts(cursor)
        for _ in range(entries):
            key = cursor.text(tr("a key"), _MAX_KEY_BYTES)
            kind = cursor.u32(key)
            if key == "tokenizer.ggml.tokens" and kind == ARRAY:
                return hashlib.sha256(cursor.peek(_VOCABULARY_BYTES)).digest()
            cursor.value(key, kind)
    except _InvalidError as error:
        raise UnreadableGgufError(path, str(error)) from None
    return b""


def _cursor(path: Path) -> _Cursor:
    """Open a file for reading its beginning. Raises CorruptWeightsError, ModelFileError."""
    return _checked_cursor(_opened((path,)).files[path])


def _check_split(file: Path, metadata: Mapping[str, Value], number: int, count: int) -> None:
    there = metadata.get("split.no", number), metadata.get("split.count", count)
    if there != (number, count):
        raise UnreadableGgufError(
            file,
            tr("it is part {there} of {total} inside, but part {number} of {count} by its name").format(
                there=there[0], total=there[1], number=number, count=count
            ),
        )


def _read_one(file: MappedFile) -> tuple[dict[str, Value], list[GgufTensor]]:
    cursor = _checked_cursor(file)
    try:
        metadata, entries = _read_header(cursor)
        return metadata, _place(file.path, cursor, metadata, entries)
    except _InvalidError as error:
        raise UnreadableGgufError(file.path, str(error)) from None


def _opened(files: Sequence[Path]) -> MappedFiles:
    """Open regular files without waiting, whatever they are. Raises ModelFileError."""
    try:
        return MappedFiles(files)
    except (OSError, ValueError) as error:
        reason = system_error_reason(error)
        raise ModelFileError(
            tr("{file} cannot be opened: {reason}.").format(
                file=getattr(error, "filename", None) or files[0], reason=reason
            ),
            tr("Copy or download the file again, all parts if it is split."),
        ) from error


def _checked_cursor(file: MappedFile) -> _Cursor:
    if sys.byteorder != "little":
        raise UnreadableGgufError(file.path, tr("this computer's processor stores numbers in another order"))
    if file.size < len(MAGIC):
        raise UnreadableGgufError(file.path, tr("it is empty") if not file.size else tr("it is too short"))
    return _Cursor(file)


def _read_counts(cursor: _Cursor) -> tuple[int, int]:
    """Read magic, version and both counts; return the number of tensors and of metadata entries."""
    if cursor.take(4, tr("its beginning")) != MAGIC:
        raise _InvalidError(tr("it does not begin with GGUF"))
    version = cursor.u32(tr("its version"))
    if version not in _VERSIONS:
        if int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS:
            raise _InvalidError(tr("it was written for processors that store numbers in another order (big-endian)"))
        raise _InvalidError(tr("it has version {version} of the format; 2 and 3 are read").format(version=version))
    tensors = cursor.count(tr("tensors"), _MIN_TENSOR_BYTES)
    return tensors, cursor.count(tr("metadata entries"), _MIN_ENTRY_BYTES)


def _read_header(cursor: _Cursor) -> tuple[dict[str, Value], list[tuple[str, tuple[int, ...], BlockFormat, int]]]:
    """Return the metadata, and name, shape, format and offset of each tensor."""
    tensor_count, entry_count = _read_counts(cursor)
    metadata: dict[str, Value] = {}
    for _ in range(entry_count):
        key = cursor.text(tr("a key"), _MAX_KEY_BYTES)
        if key in metadata:
            raise _InvalidError(tr("the key {key} is there twice").format(key=key[:80]))
        metadata[key] = cursor.value(key)
    return metadata, [_read_entry(cursor) for _ in range(tensor_count)]


def _read_entry(cursor: _Cursor) -> tuple[str, tuple[int, ...], BlockFormat, int]:
    name = cursor.text(tr("a tensor's name"), _MAX_NAME_BYTES)
    dimensions = cursor.u32(name)
    if not 0 < dimensions <= _MAX_DIMENSIONS:
        raise _InvalidError(
            tr("the tensor {name} has {dimensions:,} dimensions; 1 to 4 are possible").format(
                name=name, dimensions=dimensions
            )
        )
    sizes = [cursor.u64(name) for _ in range(dimensions)]
    kind, offset = cursor.u32(name), cursor.u64(name)
    fmt = FORMATS.get(kind)
    if fmt is None:
        raise _InvalidError(tr("the tensor {name} has the unknown type {kind}").format(name=name, kind=kind))
    if 0 in sizes:
        raise _InvalidError(tr("the tensor {name} is empty").format(name=name))
    if sizes[0] % fmt.block_weights:
        raise _InvalidError(
            tr("the rows of the tensor {name} ({width:,} numbers) are no whole blocks of {fmt}").format(
                name=name, width=sizes[0], fmt=fmt.name
            )
        )
    return name, tuple(reversed(sizes)), fmt, offset


def _place(
    file: Path,
    cursor: _Cursor,
    metadata: Mapping[str, Value],
    entries: Sequence[tuple[str, tuple[int, ...], BlockFormat, int]],
) -> list[GgufTensor]:
    """Return the tensors with their places in the file, all inside it and none over another."""
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if (
        not isinstance(alignment, int) or isinstance(alignment, bool)
        or not 0 < alignment <= _MAX_ALIGNMENT or alignment & (alignment - 1)
    ):  # fmt: skip
        raise _InvalidError(
            tr("its alignment is {alignment}, not a power of two").format(alignment=str(alignment)[:80])
        )
    begin = -(-cursor.position // alignment) * alignment
    placed, names = [], set[str]()
    for name, shape, fmt, offset in entries:
        if name in names:
            raise _InvalidError(tr("the tensor {name} is there twice").format(name=name))
        names.add(name)
        if offset % alignment:
            raise _InvalidError(tr("the tensor {name} does not start at a multiple of {alignment}").format(
                name=name, alignment=alignment
            ))  # fmt: skip
        tensor = GgufTensor(name, shape, fmt, file, begin + offset, 0)
        nbytes = tensor.numbers // fmt.block_weights * fmt.block_bytes
        if begin + offset + nbytes > cursor.end:
            raise _InvalidError(
                tr("the tensor {name} ends at byte {last:,}, but the file has only {end:,}").format(
                    name=name, last=begin + offset + nbytes, end=cursor.end
                )
            )
        placed.append(tensor._replace(nbytes=nbytes))
    order = sorted(placed, key=lambda one: one.start)
    for one, after in itertools.pairwise(order):
        if one.start + one.nbytes > after.start:
            raise _InvalidError(tr("the tensors {one} and {after} overlap").format(one=one.name, after=after.name))
    return placed
