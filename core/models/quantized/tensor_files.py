"""Tensors in safetensors files, read on demand, or mapped where they are used as they are stored.

A mapped file counts as memory of the process once it was read, in addition to what is made of it; plain reads keep only
the current portion in memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from io import FileIO, RawIOBase
from pathlib import Path
from types import EllipsisType

import torch

from decodescope.core.models.mapped_files import MappedFiles, map_pages
from decodescope.core.models.model_files import WeightFiles, read_header
from decodescope.resources.language import tr

_MIN_BYTES = 2**16
"""Size in bytes from which buffers get their own pages."""


def allocate_pages(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return an uninitialized tensor whose pages are returned to the system when it is freed."""
    size = math.prod(shape) * dtype.itemsize
    if size < _MIN_BYTES:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(map_pages(size), dtype=dtype).view(shape)


_TYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "U16": torch.uint16, "U32": torch.uint32,
    "U64": torch.uint64, "C64": torch.complex64,
}  # fmt: skip


class FileTensor:
    """One tensor of a file. `stored[...]` reads it fully, as transformers does, with floats converted to `read_dtype`;
    `stored[a:b]` reads rows a to b unconverted. `sources` are the open files, if they are; `is_mapped`: a tensor that
    is not converted is a view of the mapped file. Reads raise OSError or CorruptWeightsError.
    """

    def __init__(
        self, file: Path, start: int, shape: tuple[int, ...], dtype: torch.dtype,
        read_dtype: torch.dtype | None = None, sources: MappedFiles | None = None, is_mapped: bool = False,
    ) -> None:  # fmt: skip
        self.file, self.start = file, start
        self.shape, self.dtype = shape, dtype
        self._read_dtype = read_dtype if read_dtype is not None and dtype.is_floating_point else dtype
        self._sources, self._is_mapped = sources, is_mapped and not start % dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes in its file."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, rows: slice | EllipsisType) -> torch.Tensor:
        if isinstance(rows, EllipsisType):
            if self._sources is not None and self._is_mapped and self._read_dtype is self.dtype and self.nbytes:
                view = self._sources.view(self.file, self.start, self.nbytes)
                return torch.frombuffer(view, dtype=torch.uint8).view(self.dtype).view(self.shape)
            read = self._read(0, self.shape)
            return read if self._read_dtype is self.dtype else allocate_pages(self.shape, self._read_dtype).copy_(read)
        first, last, _ = rows.indices(self.shape[0])
        width = math.prod(self.shape[1:])
        return self._read(first * width, (last - first, *self.shape[1:]))

    def pick(self, places: Sequence[int]) -> torch.Tensor:
        """Return single numbers, unconverted, by their places in the flat tensor: one read for each."""
        buffer = torch.empty(len(places) * self.dtype.itemsize, dtype=torch.uint8)
        for place, one in zip(places, buffer.split(self.dtype.itemsize), strict=True):
            self._fill(place, one)
        return buffer.view(self.dtype)

    def _read(self, skipped: int, shape: tuple[int, ...]) -> torch.Tensor:
        """Read the numbers after the first `skipped`. Raises OSError if the file is too short."""
        buffer = allocate_pages((math.prod(shape) * self.dtype.itemsize,), torch.uint8)
        self._fill(skipped, buffer)
        return buffer.view(self.dtype).view(shape)

    def _fill(self, skipped: int, buffer: torch.Tensor) -> None:
        if self._sources is not None:
            start = self.start + skipped * self.dtype.itemsize
            self._sources.read(self.file, start, memoryview(buffer.numpy().data))
            return
        with self.file.open("rb", buffering=0) as stream:
            stream.seek(self.start + skipped * self.dtype.itemsize)
            if _read_full(stream, memoryview(buffer.numpy().data)) < len(buffer):
                raise OSError(f"{self.file.name} ended early")


class LazyWeights:
    """A stored matrix that is passed on unread and read in row portions when it is packed."""

    def __init__(self, file_tensor: FileTensor) -> None:
        self.stored = file_tensor

    def __getitem__(self, everything: EllipsisType) -> LazyWeights:
        return self

    def to(self, **_: object) -> LazyWeights:
        """Ignore the device and dtype that transformers requests; the final reader decides."""
        return self


def _read_full(stream: RawIOBase, view: memoryview) -> int:
    """Read until `view` is full or the file ends; return the number of bytes. A single read is limited to two
    gigabytes.
    """
    done = 0
    while done < len(view) and (count := stream.readinto(view[done:])):
        done += count
    return done


def read_into(stream: FileIO, start: int, buffers: Sequence[memoryview]) -> None:
    """Read contiguous bytes of a file into several buffers. Raises OSError if the file is too short."""
    left = [buffer for buffer in buffers if len(buffer)]
    if hasattr(os, "preadv"):
        while left and (count := os.preadv(stream.fileno(), left, start)):
            start += count
            while left and count >= len(left[0]):
                count -= len(left.pop(0))
            if count:
                left[0] = left[0][count:]
    else:
        stream.seek(start)
        while left and _read_full(stream, left[0]) == len(left[0]):
            left.pop(0)
    if left:
        raise OSError(tr("the file is too short"))


def _length_bytes(file: Path) -> bytes:
    """Return the eight bytes that contain the header's length."""
    with file.open("rb") as stream:
        return stream.read(8)


def stored_tensors(
    weights: WeightFiles, by_rows: Collection[tuple[int, ...] | str] = (), read_dtype: torch.dtype | None = None,
    sources: MappedFiles | None = None, is_mapped: bool = False,
) -> dict[str, FileTensor | LazyWeights]:  # fmt: skip
    """Return every tensor of these files by name, floats as `read_dtype` or as stored; matrices with a shape or a name
    in `by_rows` are LazyWeights. `sources` and `is_mapped` as in `FileTensor`.
    """
    found: dict[str, FileTensor | LazyWeights] = {}
    for file in weights.files:
        header = read_header(file) or {}
        begin = 8 + int.from_bytes(_length_bytes(file), "little")
        for name, entry in header.items():
            shape = tuple(entry.shape)
            tensor = FileTensor(
                file, begin + entry.data_offsets[0], shape, _TYPES[entry.dtype or "F32"], read_dtype, sources, is_mapped
            )
            found[name] = LazyWeights(tensor) if shape in by_rows or name in by_rows else tensor
    return found


def has_known_types(weights: WeightFiles) -> bool:
    """Return whether the numbers of all tensors in these files can be read here."""
    headers = (read_header(file) or {} for file in weights.files)
    return not weights.pickled and all(entry.dtype in _TYPES for header in headers for entry in header.values())


def is_conversion(weights: WeightFiles, dtype: torch.dtype) -> bool:
    """Return whether most numbers in these files have another dtype than `dtype`."""
    if weights.pickled:
        return False
    other = same = 0
    for file in weights.files:
        for entry in (read_header(file) or {}).values():
            kind = _TYPES.get(entry.dtype)
            count = math.prod(entry.shape)
            other, same = (other, same + count) if kind is dtype else (other + count, same)
    return other > same
