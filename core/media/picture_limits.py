"""What it would cost to decode a picture, told by its file's structure before a pixel is unpacked."""

from __future__ import annotations

import io
import re
import struct
import time
from collections.abc import Iterator

from resources.language import tr

MOST_SIDE = 65_535
"""Pixels; JPEG has no longer ones. Decoders pay for each row, however narrow."""
MOST_SECONDS = 20.0
"""Processor time to decode one picture; the largest ones take two or three."""
MOST_SCANS = 500
MOST_SCANNED = 2_000_000_000
"""Pixels times the scans of a progressive JPEG, each of which goes over all of them. Cameras write about ten scans."""
MOST_CHUNKS = 100_000
"""Of a PNG."""
MOST_ENTRIES = 1_000_000
"""Values of one field of a TIFF: offsets of its strips or tiles."""
MOST_FRAMES = 10_000
"""Pictures of an animation that are counted."""

_JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_ALONE = {0x01, 0xD8, 0xD9}
"""Markers of a JPEG without a length."""


class TooSlowError(Exception):
    """A picture takes more processor time to decode than any should."""


class TimedBytes(io.BytesIO):
    """The content of a file; decoders that read it piece by piece are interrupted when their time is over."""

    def __init__(self, content: bytes, seconds: float = MOST_SECONDS) -> None:
        super().__init__(content)
        self._end = time.thread_time() + seconds

    def read(self, size: int | None = -1, /) -> bytes:
        """As of any file. Raises TooSlowError."""
        if time.thread_time() > self._end:
            raise TooSlowError
        return super().read(size)


def unreasonable(content: bytes, width: int, height: int) -> str:
    """Why a picture of this size is not decoded; empty where it can be."""
    if max(width, height) > MOST_SIDE:
        return f"{width} × {height}"
    if content.startswith(b"\xff\xd8"):
        scans = count_scans(content)
        if scans > MOST_SCANS or scans * width * height > MOST_SCANNED:
            return tr("{scans:,} scans of {width} × {height}").format(scans=scans, width=width, height=height)
    return ""


def unreasonable_structure(content: bytes) -> str:
    """Why a file is not even opened; empty where it can be."""
    if content.startswith(b"\x89PNG") and (chunks := count_chunks(content)) > MOST_CHUNKS:
        return tr("{count:,} chunks").format(count=chunks)
    if content[:4] in (b"II*\0", b"MM\0*"):
        most = max((count for _tag, count in _tiff_fields(content)), default=0)
        if most > MOST_ENTRIES:
            return tr("{count:,} entries").format(count=most)
    return ""


def count_scans(content: bytes) -> int:
    """Scans of a JPEG, counted up to one more than are decoded."""
    scans, place = 0, 2
    while scans <= MOST_SCANS and (found := _JPEG_MARKER.search(content, place)) is not None:
        marker, place = content[found.start() + 1], found.end()
        if marker == _END_OF_IMAGE:
            break
        scans += marker == _START_OF_SCAN
        if marker not in _ALONE:
            place += max(2, int.from_bytes(content[place : place + 2], "big"))
    return scans


def count_chunks(content: bytes) -> int:
    """Chunks of a PNG, counted up to one more than are read."""
    chunks, place = 0, 8
    while place + 8 <= len(content) and chunks <= MOST_CHUNKS:
        chunks += 1
        place += 12 + int.from_bytes(content[place : place + 4], "big")
    return chunks


def count_frames(content: bytes) -> int | None:
    """Pictures of a GIF or a TIFF, up to a limit; None for other formats, which say it in their header."""
    if content.startswith(b"GIF8"):
        return max(1, sum(1 for _ in zip(range(MOST_FRAMES), _gif_frames(content), strict=False)))
    if content[:4] in (b"II*\0", b"MM\0*"):
        return max(1, sum(1 for _ in zip(range(MOST_FRAMES), _tiff_directories(content), strict=False)))
    return None


def _gif_frames(content: bytes) -> Iterator[int]:
    """Where the pictures of a GIF begin."""
    place = 13 + _colour_table(content, 10)
    while place < len(content):
        kind = content[place]
        if kind == 0x2C:  # a picture
            yield place
            place += 11 + _colour_table(content, place + 9)
        elif kind == 0x21:  # an extension
            place += 2
        else:
            return
        while place < len(content) and content[place]:  # blocks, each with its length in front
            place += 1 + content[place]
        place += 1


def _colour_table(content: bytes, place: int) -> int:
    """Bytes of a colour table whose flags stand at `place`."""
    flags = content[place] if place < len(content) else 0
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _tiff_directories(content: bytes) -> Iterator[int]:
    """Where the directories of a TIFF begin, each once."""
    order = "<" if content[:2] == b"II" else ">"
    seen: set[int] = set()
    link = 4
    while link + 4 <= len(content):
        (place,) = struct.unpack_from(f"{order}I", content, link)
        if place == 0 or place in seen or place + 2 > len(content):
            return
        seen.add(place)
        yield place
        (entries,) = struct.unpack_from(f"{order}H", content, place)
        link = place + 2 + 12 * entries


def _tiff_fields(content: bytes) -> Iterator[tuple[int, int]]:
    """(tag, count of values) of the first directory."""
    order = "<" if content[:2] == b"II" else ">"
    for place in _tiff_directories(content):
        (entries,) = struct.unpack_from(f"{order}H", content, place)
        for number in range(entries):
            start = place + 2 + 12 * number
            if start + 12 > len(content):
                return
            tag, _kind, count = struct.unpack_from(f"{order}HHI", content, start)
            yield tag, count
        return
