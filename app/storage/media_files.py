"""Pictures from the clipboard and what was recorded, kept as files: runs go on to name them."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path

from app.storage.json_files import write_bytes

FOLDER = "media"


def save_pasted_picture(data: Path, png: bytes) -> Path:
    """Keep a picture; one that is kept already has one file. Raises StorageError."""
    path = data / FOLDER / f"pasted-{hashlib.sha256(png).hexdigest()[:12]}.png"
    if not path.exists():
        write_bytes(path, png)
    return path


def new_recording_path(data: Path, now: datetime) -> Path:
    """Where the next recording is written; nothing is there yet."""
    stem = f"recorded-{now:%Y-%m-%d-%H%M%S}"
    names = (f"{stem}{ending}.wav" for ending in ("", *(f"-{number}" for number in range(2, 1000))))
    return next(path for name in names if not (path := data / FOLDER / name).exists())
