"""What is known of a file of sound or of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["sound", "picture"]
SOUND: Kind = "sound"
PICTURE: Kind = "picture"


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file that can be read. Of a sound the seconds, samples a second and channels; of a picture the size as it is
    seen, and how many pictures an animation has (the first is read)."""

    path: Path
    kind: Kind
    format: str
    """Its format's usual name: WAV, FLAC, PNG, JPEG."""
    bytes: int
    digest: str
    """SHA-256 of the file, in hexadecimal."""
    seconds: float = 0.0
    rate: int = 0
    channels: int = 0
    width: int = 0
    height: int = 0
    frames: int = 1
