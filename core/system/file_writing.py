"""Write files atomically, lock them, and use cache and temporary folders, on disks that may be full."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from decodescope.core.errors import FileNotWrittenError
from decodescope.core.system.system_errors import DISK_FULL_ERRORS, system_error_reason, writing_remedy
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
    if path.exists() and not path.is_file():  # before links are followed: the target of /dev/stdout may have no name
        yield path
        return
    target = Path(os.path.realpath(path))  # preserve symbolic links
    part = target.with_name(f".{os.urandom(8).hex()}{target.suffix}")
    try:
        yield part
        if target.exists():
            shutil.copymode(target, part)
        os.replace(part, target)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def check_destination(
    path: Path, *, is_folder: bool = False, creates_folders: bool = False, is_optional: bool = False
) -> None:
    """Raise FileNotWrittenError if no file can be written at `path`, before the work for its content begins.

    `is_folder`: files are written into a folder at `path`, which is created if necessary. `creates_folders`: missing
    folders above the file are created too. `is_optional`: a folder without write permission is accepted. A device or a
    pipe is a possible destination. A full disk is noticed only when the content is written.
    """
    try:
        mode = _mode_of(path)
        if mode is None:
            _check_folder(path.parent, is_folder or creates_folders, is_optional)
        elif is_folder:
            _check_folder(path, True, is_optional)
        elif stat.S_ISDIR(mode):
            raise FileNotWrittenError(
                tr("{path} is a folder.").format(path=path), tr("Add the name of a file, or choose another one.")
            )
        elif stat.S_ISREG(mode):
            _check_folder(path.parent, False, is_optional)
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, "")
    except OSError as error:
        raise not_written_error(path, error) from None
    except ValueError:
        raise FileNotWrittenError(
            tr("{path} is not a valid name.").format(path=path), tr("Choose another name.")
        ) from None


def _mode_of(path: Path) -> int | None:
    """Return the type and permissions of a file; None if there is none. Raises OSError, ValueError."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _check_folder(folder: Path, creates_folders: bool, is_optional: bool) -> None:
    """Raise FileNotWrittenError if no file can be created in a folder, OSError with the reason if it is read-only."""
    place = folder
    while (mode := _mode_of(place)) is None and place != place.parent:
        place = place.parent
    if mode is not None and not stat.S_ISDIR(mode):
        raise FileNotWrittenError(tr("{path} is not a folder.").format(path=place), tr("Choose another folder."))
    if place != folder and not creates_folders:
        raise FileNotWrittenError(
            tr("The folder {path} does not exist.").format(path=folder), tr("Create it, or choose another folder.")
        )
    if is_optional:
        return
    if os.name == "nt":  # there, a trial in a folder without permission takes minutes
        if not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, "")
        return
    with tempfile.TemporaryFile(dir=place):  # permissions alone do not tell what the system refuses
        pass


def not_written_error(path: Path | str, error: Exception | None = None) -> FileNotWrittenError:
    """Return the error for a file that could not be written, with the system's reason."""
    reason = system_error_reason(error) if error is not None else tr("writing failed")
    return FileNotWrittenError(
        tr("{target} could not be saved: {reason}.").format(target=path, reason=reason),
        writing_remedy(error, tr("Choose a folder with write permission.")),
        str(error or ""),
    )


def append_text(path: Path, text: str) -> None:
    """Append text to a file, which is created if necessary. Raises FileNotWrittenError."""
    try:
        with path.open("a", encoding="utf-8", errors="replace", newline="") as file:  # replaces lone surrogates
            file.write(text)
    except (OSError, ValueError) as error:
        raise not_written_error(path, error) from None


def save_text(text: str, target: Path) -> Path:
    """Write a text, whole or not at all, and return its path; missing folders are created, line ends stay as they are.
    Raises FileNotWrittenError.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as part:
            part.write_text(text, encoding="utf-8", errors="replace", newline="")  # replaces lone surrogates
    except (OSError, ValueError) as error:
        raise not_written_error(target, error) from None
    return target


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
