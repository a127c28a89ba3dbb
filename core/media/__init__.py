"""Audio and images: what a file contains, checked before it is decoded, and decoded as models need it.

    core.media.inspect("hello.wav").seconds
    core.media.samples("hello.wav", 16_000)

Importing this package is cheap: decoding libraries are imported with the first file of their kind. No torch.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

import hashlib
from pathlib import Path

from decodescope.core.common.lazy_imports import lazy_imports
from decodescope.core.media.media_files import SOUND, MediaFile, checked_path, kind_of, read_bytes

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.media.media_files import MOST_BYTES, MOST_PIXELS, MOST_SECONDS, PICTURE, Kind
    from decodescope.core.media.pictures import read_picture as picture
    from decodescope.core.media.sounds import read_samples as samples

__all__ = sorted([*_PUBLIC_NAMES, "SOUND", "MediaFile", "inspect", "kind_of"])


def inspect(path: str | Path) -> MediaFile:
    """Describe the file after decoding it completely once.

    Raises MediaMissingError, MediaFormatError, MediaDamagedError, MediaTooLargeError.
    """
    file = checked_path(path)
    kind, content = kind_of(file), read_bytes(file)
    digest = hashlib.sha256(content).hexdigest()
    if kind == SOUND:
        from decodescope.core.media import sounds

        return sounds.describe_sound(file, content, digest)
    from decodescope.core.media import pictures

    return pictures.describe_picture(file, content, digest)
