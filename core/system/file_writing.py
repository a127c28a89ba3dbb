"""Write files atomically, lock them, and use cache and temporary folders, on disks that may be full."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from decodescope.core.errors import FileNotWrittenError
from decodescope.core.system.system_errors import DISK_FULL_ERRORS, system_error_reason
from decodescope.core.system.user_folders import folder_variable, user_cache
from decodescope.resources.language import tr


def cache_folder() -> Path:
    """Return this program's folder in the user's cache, for results that can be computed again."""
    local = folder_variable("LOCALAPPDATA") if os.name == "nt" and not os.environ.get("XDG_CACHE_HOME") else None
    return (local or user_cache()) / "decodescope"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield the path to write the new content of `path` to, with the same suffix: a temporary file that replaces it at
    the end, or the path itself if it is not a regular file (a device). A full disk or a kill leaves the old content;
    permissions are preserved. Raises OSError.
    """
    target = Path(os.path.realpath(path))  # preserve symbolic links
    if target.exists() and not target.is_file():
        yield target
        return
    part = target.with_name(f".{os.urandom(8).hex()}{target.suffix}")
    try:
        yield part
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a temporary folder that is deleted at the end. Raises FileNotWrittenError if there is no space."""
    try:
        made = tempfile.TemporaryDirectory(prefix="decodescope-", ignore_cleanup_errors=True)
    except OSError as error:
        raise _no_space_error(error) from error
    with made as folder:
        try:
            yield Path(folder)
        except OSError as error:
            if error.errno in DISK_FULL_ERRORS:
                raise _no_space_error(error) from error
            raise


def _no_space_error(error: OSError) -> FileNotWrittenError:
    return FileNotWrittenError(
        tr("No temporary files can be written: {reason}.").format(reason=system_error_reason(error)),
        tr("Free up space on the disk, or set TMPDIR to a folder with free space."),
    )


_BUSY_ERRORS = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""Error codes for a lock that is taken; any other error means that the folder does not support locks."""

if sys.platform == "win32":
    import msvcrt

    def try_lock(handle: int) -> None:
        """Lock an open file. Raises OSError if another process or thread has locked it."""
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def try_lock(handle: int) -> None:
        """Lock an open file. Raises OSError if another process or thread has locked it."""
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class HeldLock(NamedTuple):
    """A lock held until `release` or the end of the process."""

    path: Path
    handle: int

    def release(self) -> None:
        """Release the lock."""
        os.close(self.handle)


class HeldElsewhereError(Exception):
    """Another window, of this process or another, holds the lock."""


def acquire_file(path: Path) -> HeldLock | None:
    """Acquire the lock of a file; return None if the folder does not support locks.

    Raises HeldElsewhereError. A lock left by a killed process is free: the operating system has released it.
    """
    handle = open_lock_file(path)
    if handle is None:
        return None
    try:
        try_lock(handle)
    except OSError as error:
        os.close(handle)
        if error.errno in _BUSY_ERRORS:
            raise HeldElsewhereError(str(path)) from None
        return None
    return HeldLock(path, handle)


def open_lock_file(path: Path) -> int | None:
    """Open a lock's file, created if necessary; return None if that is not possible."""
    with suppress(OSError):
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    return None
