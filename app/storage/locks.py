"""A lock on a folder, between processes and between threads. The system frees it when its holder dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

NAME = ".lock"
PATIENCE = 2.0
"""Seconds that a save waits for another one, which takes some milliseconds."""
LOOK_AGAIN = 0.005

if sys.platform == "win32":
    import msvcrt

    def _try(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock; False where it could not be had in time, or the folder takes none.

    To go on without is right then: a file is replaced as a whole either way, and not saving would lose more.
    """
    handle = _open(folder / NAME)
    try:
        yield handle is not None and _acquire(handle)
    finally:
        if handle is not None:
            os.close(handle)


class Hold(NamedTuple):
    """A folder's lock that is kept, until `release` or the end of the process."""

    path: Path
    handle: int

    def release(self) -> None:
        """Let others have it."""
        os.close(self.handle)


def hold(folder: Path) -> Hold | None:
    """Take the folder's lock and keep it; None where somebody else holds it, or the folder takes none."""
    handle = _open(folder / NAME)
    if handle is None:
        return None
    try:
        _try(handle)
    except OSError:
        os.close(handle)
        return None
    return Hold(folder / NAME, handle)


def _open(path: Path) -> int | None:
    with suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    return None


def _acquire(handle: int) -> bool:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            _try(handle)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_AGAIN)
        else:
            return True
