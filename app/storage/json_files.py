"""Read and atomically write JSON files, one writer at a time; unusable files are kept as copies."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from decodescope.core.errors import DecodescopeError
from decodescope.core.system.file_writing import (
    HeldElsewhereError,
    HeldLock,
    acquire_file,
    open_lock_file,
    try_lock,
)
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import mark, tr

LOCK_NAME = ".lock"
TIMEOUT_SECONDS = 2.0
"""Seconds that a save waits for another save, which takes a few milliseconds."""
POLL_SECONDS = 0.005


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock; yield False if it was not acquired in time or the folder does not support locks.

    Continuing without the lock is right then: files are replaced atomically anyway, and not saving would lose more.
    """
    handle = open_lock_file(folder / LOCK_NAME)
    try:
        yield handle is not None and _acquire(handle)
    finally:
        if handle is not None:
            os.close(handle)


def acquire_folder(folder: Path) -> HeldLock | None:
    """Acquire the folder's lock; return None if it is held elsewhere or the folder does not support locks."""
    try:
        return acquire_file(folder / LOCK_NAME)
    except HeldElsewhereError:
        return None


def _acquire(handle: int) -> bool:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            try_lock(handle)
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        else:
            return True


MAX_BYTES = 64 * 2**20
MAX_DEPTH = 24
"""Maximum nesting of lists and objects; the program's own files use five levels."""
PART_SUFFIX = ".part"
STALE_SECONDS = 3600
"""A partial file of this age was left by a process that died."""
MAX_COPIES = 999


class StorageError(DecodescopeError):
    """A file of the program could not be written; the data is still in memory."""

    title = mark("Could not save")


class UnreadableError(ValueError):
    """An existing file cannot be used; the message says why, without the path."""


def read_json(path: Path) -> Any:
    """Read a JSON file, regular files only. Raises FileNotFoundError, UnreadableError."""
    return parse_json(_read_bytes(path))


def parse_json(content: bytes) -> Any:
    """Parse JSON. Raises UnreadableError."""
    try:
        data = json.loads(content.decode("utf-8-sig"))  # editors of Windows put a byte order mark in front
    except UnicodeDecodeError:
        raise UnreadableError(tr("it is not written in UTF-8")) from None
    except json.JSONDecodeError as error:
        raise UnreadableError(
            tr("it is not valid JSON: {problem} in line {line}").format(problem=error.msg.lower(), line=error.lineno)
        ) from None
    except ValueError:
        raise UnreadableError(tr("a number in it has too many digits")) from None
    except RecursionError:
        raise UnreadableError(tr("it is nested too deeply")) from None
    if _is_nested_deeper(data, MAX_DEPTH):
        raise UnreadableError(tr("it is nested too deeply"))
    return data


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that contains an object. Raises FileNotFoundError, UnreadableError."""
    return as_object(read_json(path))


def as_object(data: Any) -> dict[str, Any]:
    """Return `data` if it is an object. Raises UnreadableError."""
    if not isinstance(data, dict):
        raise UnreadableError(tr("it contains no names and values"))
    return data


def write_json(path: Path, data: Any) -> None:
    """Write `data` to `path` atomically: a concurrent reader, or one after a crash, finds the old file or the new one.

    The file and a folder created for it are accessible only to this user. Raises StorageError.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:  # a folder name that is not valid UTF-8 can only be written with escapes
        content = (json.dumps(data, indent=2) + "\n").encode("ascii")
    write_bytes(path, content)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically, like `write_json`. Raises StorageError."""
    with _as_storage_error(path):
        target = Path(os.path.realpath(path))  # preserve symbolic links
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace_atomically(target, content)


def keep_copy(path: Path, why: str = "bad") -> str:
    """Copy `path` byte for byte to a backup file in the same folder; return a sentence with its name."""
    try:
        content = _read_bytes(path)
        for number in range(1, MAX_COPIES):
            copy = backup_path(path, why, number)
            if not os.path.lexists(copy):
                _replace_atomically(copy, content)
            elif copy.read_bytes() != content:
                continue
            return tr("The original file was saved as {name} in {folder}.").format(name=copy.name, folder=path.parent)
    except (OSError, ValueError) as error:
        return tr("The original file could not be saved ({why}).").format(why=system_error_reason(error))
    return tr("There are already {count} copies of it, so no further copy was made.").format(count=MAX_COPIES)


def set_aside(path: Path) -> str:
    """Rename whatever is at `path`, so that a file can be written there; return a sentence about it."""
    number = next((n for n in range(1, MAX_COPIES) if not os.path.lexists(backup_path(path, "bad", n))), MAX_COPIES)
    aside = backup_path(path, "bad", number)
    try:
        os.replace(path, aside)
    except OSError as error:
        return tr("It could not be moved aside either ({why}).").format(why=system_error_reason(error))
    return tr("The old file was saved as {name} in {folder}.").format(name=aside.name, folder=path.parent)


def remove_stale_parts(folder: Path) -> None:
    """Remove partial files left by killed saves."""
    with suppress(OSError):
        for path in folder.glob(f"*{PART_SUFFIX}"):  # includes hidden files
            about = path.lstat()
            if stat.S_ISREG(about.st_mode) and time.time() - about.st_mtime > STALE_SECONDS:
                path.unlink()


@contextmanager
def exclusive_writer(folder: Path) -> Iterator[None]:
    """Lock `folder` against other writers. Raises StorageError if the folder cannot be created."""
    with _as_storage_error(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder):
        yield


def _read_bytes(path: Path) -> bytes:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # reading a pipe would block forever
            raise UnreadableError(tr("it is not a regular file"))
        if about.st_size > MAX_BYTES:
            raise UnreadableError(tr("it is larger than {size} MiB").format(size=MAX_BYTES >> 20))
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(system_error_reason(error)) from None


def _is_nested_deeper(data: Any, max_depth: int) -> bool:
    level = [data]
    for _ in range(max_depth + 1):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _children(outer)]
        if not level:
            return False
    return True


def _children(container: dict[str, Any] | list[Any]) -> list[Any]:
    return list(container.values()) if isinstance(container, dict) else container


def backup_path(path: Path, why: str, number: int) -> Path:
    """Return the name of a numbered copy beside a file."""
    return path.with_name(f"{path.name}.{why}-{number}")


def _replace_atomically(path: Path, content: bytes) -> None:
    """Write to a uniquely named temporary file and rename it to `path`. Raises OSError."""
    handle, name = tempfile.mkstemp(PART_SUFFIX, f".{path.name}.", path.parent)  # readable only by this user
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Sync the folder so that the rename survives a power cut; ignored where folders cannot be synced."""
    if os.name != "posix":
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _as_storage_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else None
        remedy = tr(_REMEDIES.get(number or 0, mark("Choose another folder with --config-dir.")))
        raise StorageError(
            tr("{path} cannot be written: {why}.").format(path=path, why=system_error_reason(error)), remedy
        ) from error


_DISK_FULL_REMEDY = mark("Free up space on that disk; the next save tries again.")
_PERMISSION_REMEDY = mark("Make that folder writable, or choose another with --config-dir.")
_REMEDIES = {
    errno.ENOSPC: _DISK_FULL_REMEDY,
    errno.EDQUOT: _DISK_FULL_REMEDY,
    errno.EACCES: _PERMISSION_REMEDY,
    errno.EPERM: _PERMISSION_REMEDY,
    errno.EROFS: _PERMISSION_REMEDY,
}


FOLDER = "media"


def save_pasted_picture(data: Path, png: bytes) -> Path:
    """Store a picture, once per content. Raises StorageError."""
    import hashlib

    path = data / FOLDER / f"pasted-{hashlib.sha256(png).hexdigest()[:12]}.png"
    if not path.exists():
        write_bytes(path, png)
    return path


def new_recording_path(data: Path, now: datetime) -> Path:
    """Return an unused path for the next sound recording."""
    stem = f"recorded-{now:%Y-%m-%d-%H%M%S}"
    names = (f"{stem}{ending}.wav" for ending in ("", *(f"-{number}" for number in range(2, 1000))))
    return next(path for name in names if not (path := data / FOLDER / name).exists())
