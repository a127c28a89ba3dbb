"""A lock on a folder, between processes and between threads. The system frees it when its holder dies."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

LOCK_NAME = ".lock"
TIMEOUT_SECONDS = 2.0
"""Seconds that a save waits for another one, which takes some milliseconds."""
POLL_SECONDS = 0.005
_BUSY_ERRORS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""What a system says of a lock that is taken; anything else means that the folder takes no locks."""

if sys.platform == "win32":
    import msvcrt

    def _try(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock; False where it could not be had in time, or the folder takes none.

    To go on without is right then: a file is replaced as a whole either way, and not saving would lose more.
    """
    handle = _open_lock_file(folder / LOCK_NAME)
    try:
        yield handle is not None and _acquire(handle)
    finally:
        if handle is not None:
            os.close(handle)


class HeldLock(NamedTuple):
    """A folder's lock that is kept, until `release` or the end of the process."""

    path: Path
    handle: int

    def release(self) -> None:
        """Let others have it."""
        os.close(self.handle)


class HeldElsewhereError(Exception):
    """Another window, of this process or another, holds the lock."""


def acquire_folder(folder: Path) -> HeldLock | None:
    """Take the folder's lock and keep it; None where somebody else holds it, or the folder takes none."""
    try:
        return acquire_file(folder / LOCK_NAME)
    except HeldElsewhereError:
        return None


def acquire_file(path: Path) -> HeldLock | None:
    """Take the lock of that file and keep it; None where the folder takes no locks.

    Raises HeldElsewhereError. A lock that a killed process has left is free: the system has let it go.
    """
    handle = _open_lock_file(path)
    if handle is None:
        return None
    try:
        _try_lock(handle)
    except OSError as error:
        os.close(handle)
        if error.errno in _BUSY_ERRORS:
            raise HeldElsewhereError(str(path)) from None
        return None
    return HeldLock(path, handle)


def _open_lock_file(path: Path) -> int | None:
    with suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    return None


def _acquire(handle: int) -> bool:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            _try_lock(handle)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        else:
            return True
