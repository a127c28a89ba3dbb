"""An animated PNG, written as it goes on: https://www.w3.org/TR/png-3/#apng-frame-based-animation."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from app.storage.film.frame import Box, DeltaWriter

if TYPE_CHECKING:
    from PIL.Image import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"


class ApngWriter(DeltaWriter):
    """How many frames there were, stands in the header: it is written there at the end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._frames = self._number = 0

    def close(self) -> None:
        """The last frame, and how many there were."""
        self.flush()
        self._chunk(b"IEND", b"")
        self._file.seek(len(SIGNATURE) + _CHUNK + _HEADER)
        self._chunk(b"acTL", struct.pack(">II", self._frames, 0))
        self._file.close()

    def write(self, image: Image, box: Box, milliseconds: int) -> None:
        """A frame's control, and its data: the first one's as every PNG has it."""
        left, top, right, bottom = box
        if not self._frames:
            self._file.write(SIGNATURE)
            self._chunk(b"IHDR", struct.pack(">IIBBBBB", *image.size, 8, 2, 0, 0, 0))
            self._chunk(b"acTL", struct.pack(">II", 0, 0))
        control = struct.pack(
            ">IIIIIHHBB", self._next(), right - left, bottom - top, left, top, min(milliseconds, 65_535), 1000, 0, 0
        )
        self._chunk(b"fcTL", control)
        for data in _idat_chunks(image):
            if self._frames:
                self._chunk(b"fdAT", struct.pack(">I", self._next()) + data)
            else:
                self._chunk(b"IDAT", data)
        self._frames += 1

    def _next(self) -> int:
        self._number += 1
        return self._number - 1

    def _chunk(self, kind: bytes, data: bytes) -> None:
        crc = zlib.crc32(kind + data)
        self._file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc))


_CHUNK, _HEADER = 12, 13
"""Bytes around a chunk's data, and of the header's data."""


def _idat_chunks(image: Image) -> Iterator[bytes]:
    """The IDAT chunks that Pillow makes of it."""
    out = BytesIO()
    image.save(out, "PNG", compress_level=6)
    data, place = out.getvalue(), len(SIGNATURE)
    while place < len(data):
        (length,) = struct.unpack_from(">I", data, place)
        if data[place + 4 : place + 8] == b"IDAT":
            yield data[place + 8 : place + 8 + length]
        place += _CHUNK + length
