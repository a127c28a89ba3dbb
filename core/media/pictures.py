"""Pictures: decoded by Pillow, turned upright, and brought to eight bits of red, green and blue."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from core.errors import MediaError, MediaTooLargeError
from core.media.file import PICTURE, MediaFile
from core.media.limits import MOST_PIXELS
from core.media.opening import checked_path, damaged_error, read_bytes
from core.media.picture_limits import (
    DecodeTimeoutError,
    TimeLimitedBytes,
    count_frames,
    size_refusal,
    structure_refusal,
)
from resources.language import tr

_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
_WIDE_MODES = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""Pillow's modes of grey with more than eight bits."""


def describe_picture(file: Path, content: bytes, digest: str) -> MediaFile:
    """What the picture is. Raises MediaDamagedError, MediaTooLargeError."""
    opened = _open(file.name, content)
    frames = _frame_count(opened, content)
    seen = _decode_picture(file.name, opened)
    return MediaFile(
        file, PICTURE, opened.format or "", len(content), digest, width=seen.width, height=seen.height,
        frames=frames,
    )  # fmt: skip


def read_picture(path: str | Path) -> Image.Image:
    """RGB, as one sees it. Raises MediaError."""
    name = checked_path(path).name
    return _to_rgb(_decode_picture(name, _open(name, read_bytes(path))))


def _open(name: str, content: bytes) -> Image.Image:
    """Its header, judged before a pixel is unpacked."""
    if reason := structure_refusal(content):
        raise _too_slow_error(name, reason)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
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


def _decode_picture(name: str, opened: Image.Image) -> Image.Image:
    """Every pixel of the first picture, turned as the camera was held."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what stands in its notes (EXIF), which nobody asked for
            opened.load()
            return ImageOps.exif_transpose(opened)
    except Image.DecompressionBombError as error:
        raise _too_large_error(name, str(error)) from error
    except DecodeTimeoutError:
        raise _too_slow_error(name, f"{opened.width} × {opened.height}") from None
    except MediaError:
        raise
    except Exception as error:  # each format's decoder fails in its own way
        raise damaged_error(name, PICTURE, error) from error


def _to_rgb(picture: Image.Image) -> Image.Image:
    """Eight bits of red, green and blue; what is transparent lies on white."""
    if picture.mode in _WIDE_MODES:
        return _to_eight_bits(picture).convert("RGB")
    if picture.has_transparency_data:
        ground = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(ground, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")


def _to_eight_bits(picture: Image.Image) -> Image.Image:
    """Grey of sixteen bits (or of floats from 0 to 1) in eight; Pillow's own conversion cuts off instead."""
    values = np.asarray(picture).astype(np.float64)
    most = values.max(initial=0.0)
    scale = 255.0 if picture.mode == "F" and most <= 1 else 255 / 65535 if most > 255 or "16" in picture.mode else 1.0
    return Image.fromarray((np.nan_to_num(values) * scale).round().clip(0, 255).astype(np.uint8))


def _frame_count(opened: Image.Image, content: bytes) -> int:
    """Of an animation. Pillow has an attribute for formats that can hold several; it goes through all of them where
    the header does not say how many there are."""
    counted = count_frames(content)
    return counted if counted is not None else int(getattr(opened, "n_frames", 1))


def _too_slow_error(name: str, details: str) -> MediaTooLargeError:
    return MediaTooLargeError(
        tr("{file} is built in a way that takes too long to decode ({details}).").format(file=name, details=details),
        tr("Open it in another program and save it again."),
        details,
    )


def _too_large_error(name: str, details: str) -> MediaTooLargeError:
    return MediaTooLargeError(
        tr("{file} has more than the {most:,} pixels that are read.").format(file=name, most=MOST_PIXELS),
        tr("Make it smaller and save it again."),
        details,
    )
