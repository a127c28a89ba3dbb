"""A file that takes its place once it is whole: a full disk, or a kill, leaves what stood there before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write what is to become `path`, with its suffix: beside it, or at once to what is no file (a device).
    Raises OSError."""
    target = Path(os.path.realpath(path))  # a link stays a link
    if target.exists() and not target.is_file():
        yield target
        return
    part = target.with_name(f".{os.urandom(8).hex()}{target.suffix}")
    try:
        yield part
        os.replace(part, target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
