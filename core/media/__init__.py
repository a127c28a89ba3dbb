"""Audio and images: what a file contains, checked before it is decoded, and decoded as models need it.

    core.media.inspect("hello.wav").seconds
    core.media.samples("hello.wav", 16_000)

Importing this package is cheap: decoding libraries are imported with the first file of their kind. No torch.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from core.media.media_files import (
    MOST_BYTES,
    MOST_PIXELS,
    MOST_SECONDS,
    PICTURE,
    SOUND,
    Kind,
    MediaFile,
    checked_path,
    kind_of,
    read_bytes,
)

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

__all__ = [
    "MOST_BYTES",
    "MOST_PIXELS",
    "MOST_SECONDS",
    "PICTURE",
    "SOUND",
    "Kind",
    "MediaFile",
    "inspect",
    "kind_of",
    "picture",
    "samples",
]


def inspect(path: str | Path) -> MediaFile:
    """Describe the file after decoding it completely once.

    Raises MediaMissingError, MediaFormatError, MediaDamagedError, MediaTooLargeError.
    """
    file = checked_path(path)
    kind, content = kind_of(file), read_bytes(file)
    digest = hashlib.sha256(content).hexdigest()
    if kind == SOUND:
        from core.media import sounds

        return sounds.describe_sound(file, content, digest)
    from core.media import pictures

    return pictures.describe_picture(file, content, digest)


def samples(path: str | Path, rate: int) -> np.ndarray:
    """Return the audio as one channel, float32 [n] from −1 to 1, at `rate` samples per second. Raises MediaError."""
    from core.media.sounds import read_samples

    return read_samples(path, rate)


def picture(path: str | Path) -> Image.Image:
    """Return the image as displayed: RGB, upright, transparency on white, first frame of an animation. Raises
    MediaError.
    """
    from core.media.pictures import read_picture

    return read_picture(path)
