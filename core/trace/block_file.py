"""The file itself: a mark, a version, and blocks, each compressed, with a checksum that goes on from the one before."""

from __future__ import annotations

import errno
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from core.errors import TraceError
from core.trace.schema import VERSION
from resources.language import mark, tr

MARK = b"\x89tokscp\n"
_VERSION = struct.Struct("<HH")
_FRAME = struct.Struct("<cIII")
"""Kind of block, bytes in the file, bytes unfolded, checksum (CRC-32)."""
HEADER, EVENTS, END = b"H", b"E", b"Z"
_MAX_BLOCK_BYTES = 2**28
MIN_EXPANDED_BYTES = 2**26
_EXPANDED_PER_BYTE = 200
"""How far a file may unfold: a bomb of zeros unfolds to a thousand times its size."""
LEVEL = 3
COPY_AGAIN_REMEDY = mark("Copy it again from where it came from, or record the run anew.")


@dataclass(frozen=True, slots=True)
class TraceBlock:
    """One block, checked and unfolded."""

    kind: bytes
    data: bytes
    stored_bytes: int
    """Bytes it takes in the file."""


class BlockFile:
    """A file that is being written; what has been written stays, whatever happens to the program."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        if os.path.exists(path) and not os.path.isfile(path):  # to open a pipe would wait for ever
            raise OSError(errno.EINVAL, tr("it is a folder, a pipe or a device"))
        self._file = open(path, "wb", buffering=0)
        start = MARK + _VERSION.pack(*VERSION)
        self._checksum = zlib.crc32(start)
        try:
            self._write(start)
        except OSError:
            self._file.close()
            raise

    def write(self, kind: bytes, data: bytes) -> None:
        """Add a block. Raises OSError."""
        kept = zlib.compress(data, LEVEL)
        lengths = struct.pack("<cII", kind, len(kept), len(data))
        self._checksum = zlib.crc32(kept, zlib.crc32(lengths, self._checksum))
        self._write(_FRAME.pack(kind, len(kept), len(data), self._checksum) + kept)

    def close(self) -> None:
        """Raises OSError."""
        self._file.close()

    def _write(self, data: bytes) -> None:
        """All of it: a disk that is nearly full takes a part first, and refuses the rest."""
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]


def read_blocks(path: Path) -> Iterator[TraceBlock]:
    """The blocks of a file in order, up to its end or to where it is cut off. Raises TraceError."""
    with _open_regular(path) as file:
        total = _read_file_start(path, file)
        unfolded = MIN_EXPANDED_BYTES
        while frame := file.read(_FRAME.size):
            kind, kept, length, checksum = _FRAME.unpack(_require_length(path, frame, _FRAME.size))
            unfolded += kept * _EXPANDED_PER_BYTE - length
            if max(kept, length) > _MAX_BLOCK_BYTES or unfolded < 0:
                raise damaged_error(path, tr("a block of it unfolds to more than a run can have"))
            data = _require_length(path, file.read(kept), kept)
            total = zlib.crc32(data, zlib.crc32(frame[:9], total))
            if total != checksum:
                raise damaged_error(path, tr("a checksum does not match"))
            yield TraceBlock(kind, _decompress(path, data, length), kept)


def damaged_error(path: Path, detail: str) -> TraceError:
    """The error for a file that was changed after it was written."""
    return TraceError(tr("{file} is damaged: {detail}.").format(file=path.name, detail=detail), tr(COPY_AGAIN_REMEDY))


def truncated_error(path: Path) -> TraceError:
    """The error for a file whose end is missing."""
    return TraceError(
        tr("{file} ends in the middle: the program that wrote it was ended, or it was not copied in full.").format(
            file=path.name
        ),
        tr("What comes before is whole and can be read."),
    )


@contextmanager
def _open_regular(path: Path) -> Iterator[BinaryIO]:
    """A regular file for reading; a pipe would wait for ever. Raises TraceError, also for what fails while reading."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TraceError(
                tr("{path} is a folder, a pipe or a device, not a file.").format(path=path),
                tr("Choose a recorded run."),
            )
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise TraceError(
            tr("There is no file {path}.").format(path=path), tr("Check its name and where it lies.")
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TraceError(
            tr("{path} cannot be read: {reason}.").format(path=path, reason=reason), tr("Check that you may read it.")
        ) from None


def _read_file_start(path: Path, file: BinaryIO) -> int:
    """The checksum behind the mark and the version. Raises TraceError."""
    start = file.read(len(MARK) + _VERSION.size)
    _check_version(path, start)
    return zlib.crc32(start)


def _check_version(path: Path, start: bytes) -> None:
    if not start.startswith(MARK):
        raise TraceError(
            tr("{file} is no recorded run.").format(file=path.name), tr("Choose a file that Decodescope has recorded.")
        )
    if len(start) < len(MARK) + _VERSION.size:
        raise truncated_error(path)
    major, minor = _VERSION.unpack(start[len(MARK) :])
    if major != VERSION[0]:
        cause = (
            tr(
                "{file} was written by a later version of Decodescope: its format is {major}.{minor}, and this one "
                "reads {reads}."
            )
            if major > VERSION[0]
            else tr(
                "{file} was written by another version of Decodescope: its format is {major}.{minor}, and this one "
                "reads {reads}."
            )
        )
        raise TraceError(
            cause.format(file=path.name, major=major, minor=minor, reads=VERSION[0]),
            tr("Open it with that version, or update this one."),
        )


def _require_length(path: Path, data: bytes, length: int) -> bytes:
    if len(data) < length:
        raise truncated_error(path)
    return data


def _decompress(path: Path, data: bytes, length: int) -> bytes:
    """`data` without its compression, which says beforehand how much that is."""
    unfolding = zlib.decompressobj()
    try:
        found = unfolding.decompress(data, length + 1)
    except zlib.error:
        raise damaged_error(path, tr("a block of it cannot be unfolded")) from None
    if len(found) != length or not unfolding.eof:
        raise damaged_error(path, tr("a block of it has another length than it says"))
    return found
