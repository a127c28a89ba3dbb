"""Decode images with Pillow, after an estimate of their cost from the file structure."""

from __future__ import annotations

import io
import re
import struct
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from decodescope.core.errors import MediaError, MediaTooLargeError
from decodescope.core.media.media_files import MOST_PIXELS, PICTURE, MediaFile, checked_path, damaged_error, read_bytes
from decodescope.resources.language import tr

MAX_SIDE = 65_535
"""Maximum side in pixels, which is JPEG's limit. Decoders spend time on each row, however narrow."""
MAX_DECODE_SECONDS = 20.0
"""Maximum processor time to decode an image; the largest need two or three seconds."""
MAX_SCANS = 500
MAX_SCANNED_PIXELS = 2_000_000_000
"""Maximum pixels times scans of a progressive JPEG, because each scan covers all pixels. Cameras write about ten scans.
"""
MAX_CHUNKS = 100_000
"""Maximum chunks of a PNG."""
MAX_TIFF_VALUES = 1_000_000
"""Maximum values of one TIFF field: offsets of its strips or tiles."""
MAX_FRAMES = 10_000
"""Maximum frames of an animation that are counted."""

_JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_MARKERS_WITHOUT_LENGTH = {0x01, 0xD8, 0xD9}
"""JPEG markers without a length."""


class DecodeTimeoutError(Exception):
    """Decoding an image exceeds the processor time limit."""


class TimeLimitedBytes(io.BytesIO):
    """The content of a file; decoders that read it in pieces are interrupted when the time limit is exceeded."""

    def __init__(self, content: bytes, seconds: float = MAX_DECODE_SECONDS) -> None:
        super().__init__(content)
        self._end = time.thread_time() + seconds

    def read(self, size: int | None = -1, /) -> bytes:
        """Read like any file. Raises DecodeTimeoutError."""
        if time.thread_time() > self._end:
            raise DecodeTimeoutError
        return super().read(size)


def size_refusal(content: bytes, width: int, height: int) -> str:
    """Return why an image of this size is not decoded, or "" if it is acceptable."""
    if max(width, height) > MAX_SIDE:
        return f"{width} × {height}"
    if content.startswith(b"\xff\xd8"):
        scans = count_scans(content)
        if scans > MAX_SCANS or scans * width * height > MAX_SCANNED_PIXELS:
            return tr("{scans:,} scans of {width} × {height}").format(scans=scans, width=width, height=height)
    return ""


def structure_refusal(content: bytes) -> str:
    """Return why a file is not even opened, or "" if it is acceptable."""
    if content.startswith(b"\x89PNG") and (chunks := count_chunks(content)) > MAX_CHUNKS:
        return tr("{count:,} chunks").format(count=chunks)
    if content[:4] in (b"II*\0", b"MM\0*"):
        max_count = max((count for _tag, count in _tiff_fields(content)), default=0)
        if max_count > MAX_TIFF_VALUES:
            return tr("{count:,} entries").format(count=max_count)
    return ""


def count_scans(content: bytes) -> int:
    """Count the scans of a JPEG, up to one more than the limit."""
    scans, offset = 0, 2
    while scans <= MAX_SCANS and (found := _JPEG_MARKER.search(content, offset)) is not None:
        marker, offset = content[found.start() + 1], found.end()
        if marker == _END_OF_IMAGE:
            break
        scans += marker == _START_OF_SCAN
        if marker not in _MARKERS_WITHOUT_LENGTH:
            offset += max(2, int.from_bytes(content[offset : offset + 2], "big"))
    return scans


def count_chunks(content: bytes) -> int:
    """Count the chunks of a PNG, up to one more than the limit."""
    chunks, offset = 0, 8
    while offset + 8 <= len(content) and chunks <= MAX_CHUNKS:
        chunks += 1
        offset += 12 + int.from_bytes(content[offset : offset + 4], "big")
    return chunks


def count_frames(content: bytes) -> int | None:
    """Count the frames of a GIF or TIFF, up to a limit; None for other formats, whose header gives the number."""
    if content.startswith(b"GIF8"):
        return max(1, sum(1 for _ in zip(range(MAX_FRAMES), _gif_frames(content), strict=False)))
    if content[:4] in (b"II*\0", b"MM\0*"):
        return max(1, sum(1 for _ in zip(range(MAX_FRAMES), _tiff_directories(content), strict=False)))
    return None


def _gif_frames(content: bytes) -> Iterator[int]:
    """Yield the offsets of a GIF's frames."""
    offset = 13 + _colour_table_bytes(content, 10)
    while offset < len(content):
        kind = content[offset]
        if kind == 0x2C:  # a frame
            yield offset
            offset += 11 + _colour_table_bytes(content, offset + 9)
        elif kind == 0x21:  # an extension
            offset += 2
        else:
            return
        while offset < len(content) and content[offset]:  # data blocks, each preceded by its length
            offset += 1 + content[offset]
        offset += 1


def _colour_table_bytes(content: bytes, offset: int) -> int:
    """Return the bytes of a colour table whose flags are at `offset`."""
    flags = content[offset] if offset < len(content) else 0
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _tiff_directories(content: bytes) -> Iterator[int]:
    """Yield the offsets of a TIFF's directories, each once."""
    order = "<" if content[:2] == b"II" else ">"
    seen: set[int] = set()
    link = 4
    while link + 4 <= len(content):
        (offset,) = struct.unpack_from(f"{order}I", content, link)
        if offset == 0 or offset in seen or offset + 2 > len(content):
            return
        seen.add(offset)
        yield offset
        (entries,) = struct.unpack_from(f"{order}H", content, offset)
        link = offset + 2 + 12 * entries


def _tiff_fields(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield (tag, number of values) of the first directory."""
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


_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
_WIDE_MODES = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""Pillow's greyscale modes with more than eight bits."""


def describe_picture(file: Path, content: bytes, digest: str) -> MediaFile:
    """Describe the image. Raises MediaDamagedError, MediaTooLargeError."""
    opened = _open(file.name, content)
    frames = _frame_count(opened, content)
    seen = _decode_picture(file.name, opened)
    return MediaFile(
        file, PICTURE, opened.format or "", len(content), digest, width=seen.width, height=seen.height,
        frames=frames,
    )  # fmt: skip


def read_picture(path: str | Path) -> Image.Image:
    """Return the image as displayed: RGB, upright, transparency on white, first frame of an animation. Raises
    MediaError.
    """
    name = checked_path(path).name
    return _to_rgb(_decode_picture(name, _open(name, read_bytes(path))))


def _open(name: str, content: bytes) -> Image.Image:
    """Open the image and check its header before any pixel is decoded."""
    if reason := structure_refusal(content):
        raise _too_slow_error(name, reason)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its size, which is checked below, and its metadata
            opened = Image.open(TimeLimitedBytes(content), formats=_FORMATS)
    except DecodeTimeoutError:
        raise _too_slow_error(name, tr("its header")) from None
    except Image.DecompressionBombError as error:
        raise _too_large_error(name, str(error)) from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise damaged_error(name, PICTURE, error) from error
    if opened.width * opened.height > MOST_PIXELS:
        raise _too_large_error(name, f"{opened.width} × {opened.height}")
    if reason := size_refusal(content, opened.width, opened.height):
        raise _too_slow_error(name, reason)
    return opened


def _decode_picture(name: str, image: Image.Image) -> Image.Image:
    """Decode the first frame and apply its EXIF orientation."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about its metadata (EXIF), which is not used
            image.load()
            return ImageOps.exif_transpose(image)
    except Image.DecompressionBombError as error:
        raise _too_large_error(name, str(error)) from error
    except DecodeTimeoutError:
        raise _too_slow_error(name, f"{image.width} × {image.height}") from None
    except MediaError:
        raise
    except Exception as error:  # each format's decoder raises its own exceptions
        raise damaged_error(name, PICTURE, error) from error


def _to_rgb(picture: Image.Image) -> Image.Image:
    """Convert to 8-bit RGB, with transparency on white."""
    if picture.mode in _WIDE_MODES:
        return _to_eight_bits(picture).convert("RGB")
    if picture.has_transparency_data:
        ground = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(ground, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")


def _to_eight_bits(picture: Image.Image) -> Image.Image:
    """Scale 16-bit greyscale (or floats from 0 to 1) to eight bits; Pillow's own conversion clips instead."""
    values = np.asarray(picture).astype(np.float64)
    maximum = values.max(initial=0.0)
    scale = (
        255.0 if picture.mode == "F" and maximum <= 1 else 255 / 65535 if maximum > 255 or "16" in picture.mode else 1.0
    )
    return Image.fromarray((np.nan_to_num(values) * scale).round().clip(0, 255).astype(np.uint8))


def _frame_count(image: Image.Image, content: bytes) -> int:
    """Return the number of frames.

    Pillow has an attribute for formats with several frames, but reads all of them if the header does not give the
    number.
    """
    counted = count_frames(content)
    return counted if counted is not None else int(getattr(image, "n_frames", 1))


def _too_slow_error(name: str, details: str) -> MediaTooLargeError:
    return MediaTooLargeError(
        tr("Decoding {file} takes too long because of its structure ({details}).").format(file=name, details=details),
        tr("Open it in another program and save it again."),
        details,
    )


def _too_large_error(name: str, details: str) -> MediaTooLargeError:
    return MediaTooLargeError(
        tr("{file} exceeds the limit of {most:,} pixels.").format(file=name, most=MOST_PIXELS),
        tr("Reduce its size and save it again."),
        details,
    )
