"""The file format: a mark, a version, and compressed blocks with a checksum that continues that of the previous
block.
"""

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

from decodescope.core.errors import TraceError
from decodescope.core.system.system_errors import system_error_reason
from decodescope.core.trace.schema import VERSION
from decodescope.resources.language import mark, tr

MARK = b"\x89tokscp\n"
_VERSION = struct.Struct("<HH")
_FRAME = struct.Struct("<cIII")
"""Kind of block, bytes in the file, bytes decompressed, checksum (CRC-32)."""
_START_BYTES = len(MARK) + _VERSION.size
HEADER, EVENTS, END = b"H", b"E", b"Z"
_MAX_BLOCK_BYTES = 2**28
MIN_EXPANDED_BYTES = 2**26
_EXPANDED_PER_BYTE = 200
"""Limit on decompression: a bomb of zeros expands to a thousand times its size."""
LEVEL = 3
COPY_AGAIN_REMEDY = mark("Copy the file again from its source, or record the run again.")


@dataclass(frozen=True, slots=True)
class TraceBlock:
    """One block, checked and decompressed."""

    kind: bytes
    data: bytes
    stored_bytes: int
    """Size in the file, in bytes."""


class BlockEncoder:
    """Encodes a mark and blocks, each with the checksum of everything before."""

    def __init__(self) -> None:
        self.start = MARK + _VERSION.pack(*VERSION)
        """The first bytes."""
        self._checksum = zlib.crc32(self.start)

    def encode(self, kind: bytes, data: bytes) -> bytes:
        """Return the bytes of the next block."""
        compressed = zlib.compress(data, LEVEL)
        lengths = struct.pack("<cII", kind, len(compressed), len(data))
        self._checksum = zlib.crc32(compressed, zlib.crc32(lengths, self._checksum))
        return _FRAME.pack(kind, len(compressed), len(data), self._checksum) + compressed


class BlockFile:
    """A file being written block by block; complete blocks survive a crash."""

    def __init__(self, path: Path) -> None:
        """Open the file for writing. Raises OSError."""
        if os.path.exists(path) and not os.path.isfile(path):  # opening a pipe would block forever
            raise OSError(errno.EINVAL, tr("it is a folder, a pipe or a device"))
        self._file = open(path, "wb", buffering=0)
        self._encoder = BlockEncoder()
        try:
            self._write(self._encoder.start)
        except OSError:
            self._file.close()
            raise

    def write(self, kind: bytes, data: bytes) -> None:
        """Append a block. Raises OSError."""
        self._write(self._encoder.encode(kind, data))

    def close(self) -> None:
        """Close the file. Raises OSError."""
        self._file.close()

    def _write(self, data: bytes) -> None:
        """Write all data: an almost full disk accepts a part first, and rejects the rest."""
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]


def read_blocks(path: Path) -> Iterator[TraceBlock]:
    """Yield the blocks of a file in order, up to its end or the point where it is truncated. Raises TraceError."""
    with _open_regular(path) as file:
        checker = _BlockChecker(path, file.read(_START_BYTES))
        while frame := file.read(_FRAME.size):
            stored_length = checker.check_frame(_require_length(path, frame, _FRAME.size))
            yield checker.check_data(_require_length(path, file.read(stored_length), stored_length))


class BlockParser:
    """Reads blocks from bytes that arrive in portions, as through a socket. `name` is shown in errors."""

    def __init__(self, name: str) -> None:
        self._path, self._buffer = Path(name), bytearray()
        self._checker: _BlockChecker | None = None
        self._needed = _START_BYTES
        self._has_frame = False

    def feed(self, data: bytes) -> Iterator[TraceBlock]:
        """Yield the blocks that `data` completes. Raises TraceError."""
        self._buffer += data
        while len(self._buffer) >= self._needed:
            portion = bytes(self._buffer[: self._needed])
            del self._buffer[: self._needed]
            if self._checker is None:
                self._checker, self._needed = _BlockChecker(self._path, portion), _FRAME.size
            elif not self._has_frame:
                self._needed, self._has_frame = self._checker.check_frame(portion), True
            else:
                self._needed, self._has_frame = _FRAME.size, False
                yield self._checker.check_data(portion)


class _BlockChecker:
    """Checks the start, frames and data of blocks in order. Raises TraceError."""

    def __init__(self, path: Path, start: bytes) -> None:
        _check_version(path, start)
        self._path, self._total = path, zlib.crc32(start)
        self._unfolded = MIN_EXPANDED_BYTES
        self._frame = b""

    def check_frame(self, frame: bytes) -> int:
        """Check a block's frame; return the number of its bytes that follow."""
        self._frame = frame
        _, stored_length, length, _ = _FRAME.unpack(frame)
        self._unfolded += stored_length * _EXPANDED_PER_BYTE - length
        if max(stored_length, length) > _MAX_BLOCK_BYTES or self._unfolded < 0:
            raise damaged_error(self._path, tr("one of its blocks is larger after decompression than any run can be"))
        return int(stored_length)

    def check_data(self, data: bytes) -> TraceBlock:
        """Check and decompress the data of the last frame."""
        kind, _, length, checksum = _FRAME.unpack(self._frame)
        self._total = zlib.crc32(data, zlib.crc32(self._frame[:9], self._total))
        if self._total != checksum:
            raise damaged_error(self._path, tr("a checksum does not match"))
        return TraceBlock(kind, _decompress(self._path, data, length), len(data))


def damaged_error(path: Path, detail: str) -> TraceError:
    """Return the error for a file that was modified after it was written."""
    return TraceError(tr("{file} is damaged: {detail}.").format(file=path.name, detail=detail), tr(COPY_AGAIN_REMEDY))


def truncated_error(path: Path) -> TraceError:
    """Return the error for a file whose end is missing."""
    return TraceError(
        tr("{file} is incomplete: the program was ended while writing it, or it was not copied completely.").format(
            file=path.name
        ),
        tr("The part before that is intact and can be read."),
    )


@contextmanager
def _open_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading; a pipe would block forever. Raises TraceError, also for errors within the
    block.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise TraceError(
                tr("{path} is a folder, a pipe or a device, not a file.").format(path=path),
                tr("Choose a recording."),
            )
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise TraceError(
            tr("The file {path} does not exist.").format(path=path), tr("Check its name and folder.")
        ) from None
    except (OSError, ValueError) as error:
        reason = system_error_reason(error)
        raise TraceError(
            tr("{path} cannot be read: {reason}.").format(path=path, reason=reason),
            tr("Check that you have permission to read it."),
        ) from None


def _check_version(path: Path, start: bytes) -> None:
    if not start.startswith(MARK):
        raise TraceError(
            tr("{file} is not a recording.").format(file=path.name), tr("Choose a file recorded by Decodescope.")
        )
    if len(start) < len(MARK) + _VERSION.size:
        raise truncated_error(path)
    major, minor = _VERSION.unpack(start[len(MARK) :])
    if major != VERSION[0]:
        cause = (
            tr(
                "{file} was written by a later version of Decodescope: its format is {major}.{minor}, "
                "and this version reads {reads}."
            )
            if major > VERSION[0]
            else tr(
                "{file} was written by another version of Decodescope: its format is {major}.{minor}, "
                "and this version reads {reads}."
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
    """Decompress `data`, limited to the stated `length`."""
    unfolding = zlib.decompressobj()
    try:
        found = unfolding.decompress(data, length + 1)
    except zlib.error:
        raise damaged_error(path, tr("one of its blocks cannot be decompressed")) from None
    if len(found) != length or not unfolding.eof:
        raise damaged_error(path, tr("one of its blocks does not have the stated length"))
    return found
