"""Pictures: decoded by Pillow, turned upright, and brought to eight bits of red, green and blue."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from core.errors import MediaError, MediaTooLargeError
from core.media.file import PICTURE, MediaFile
from core.media.limits import MOST_PIXELS
from core.media.opening import damaged, file_of, read_bytes
from resources.language import tr

_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
_WIDE = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
"""Pillow's modes of grey with more than eight bits."""


def describe(file: Path, content: bytes, digest: str) -> MediaFile:
    """What the picture is. Raises MediaDamagedError, MediaTooLargeError."""
    opened = _open(file.name, content)
    seen = _decode(file.name, opened)
    return MediaFile(
        file, PICTURE, opened.format or "", len(content), digest, width=seen.width, height=seen.height,
        frames=_frames(opened),
    )  # fmt: skip


def read(path: str | Path) -> Image.Image:
    """RGB, as one sees it. Raises MediaError."""
    name = file_of(path).name
    return _flat(_decode(name, _open(name, read_bytes(path))))


def _open(name: str, content: bytes) -> Image.Image:
    """Its header, judged before a pixel is unpacked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            opened = Image.open(io.BytesIO(content), formats=_FORMATS)
    except Image.DecompressionBombError as error:
        raise _too_large(name, str(error)) from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise damaged(name, PICTURE, error) from error
    if opened.width * opened.height > MOST_PIXELS:
        raise _too_large(name, f"{opened.width} × {opened.height}")
    return opened


def _decode(name: str, opened: Image.Image) -> Image.Image:
    """Every pixel of the first picture, turned as the camera was held."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what stands in its notes (EXIF), which nobody asked for
            opened.load()
            return ImageOps.exif_transpose(opened)
    except Image.DecompressionBombError as error:
        raise _too_large(name, str(error)) from error
    except MediaError:
        raise
    except Exception as error:  # each format's decoder fails in its own way
        raise damaged(name, PICTURE, error) from error


def _flat(picture: Image.Image) -> Image.Image:
    """Eight bits of red, green and blue; what is transparent lies on white."""
    if picture.mode in _WIDE:
        return _narrowed(picture).convert("RGB")
    if picture.has_transparency_data:
        ground = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(ground, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")


def _narrowed(picture: Image.Image) -> Image.Image:
    """Grey of sixteen bits (or of floats from 0 to 1) in eight; Pillow's own conversion cuts off instead."""
    values = np.asarray(picture).astype(np.float64)
    most = values.max(initial=0.0)
    scale = 255.0 if picture.mode == "F" and most <= 1 else 255 / 65535 if most > 255 or "16" in picture.mode else 1.0
    return Image.fromarray((np.nan_to_num(values) * scale).round().clip(0, 255).astype(np.uint8))


def _frames(opened: Image.Image) -> int:
    """Of an animation. Pillow tells it for formats alone that can hold several, in an attribute of their own."""
    return int(getattr(opened, "n_frames", 1))


def _too_large(name: str, details: str) -> MediaTooLargeError:
    return MediaTooLargeError(
        tr("{file} has more than the {most:,} pixels that are read.").format(file=name, most=MOST_PIXELS),
        tr("Make it smaller and save it again."),
        details,
    )
