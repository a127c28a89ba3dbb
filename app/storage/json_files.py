"""Files of plain data: read with care, written whole, one writer at a time; what cannot be used is kept beside."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from core.errors import DecodescopeError
from resources.language import mark, tr

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


MAX_BYTES = 64 * 2**20
MAX_DEPTH = 24
"""Lists and groups within each other; the program's own files have five."""
PART_SUFFIX = ".part"
STALE_SECONDS = 3600
"""A half-written file of that age belongs to nobody any more."""
MAX_COPIES = 999


class StorageError(DecodescopeError):
    """A file of the program's own could not be written; what it should have held is still in memory."""

    title = mark("This could not be saved")


class UnreadableError(ValueError):
    """A file that is there and cannot be used; the message says why, without its path."""


def read_json(path: Path) -> Any:
    """What a JSON file holds. Opens nothing but regular files. Raises FileNotFoundError, UnreadableError."""
    return parse_json(_read_bytes(path))


def parse_json(content: bytes) -> Any:
    """What that says. Raises UnreadableError."""
    try:
        data = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise UnreadableError(tr("it is not written in UTF-8")) from None
    except json.JSONDecodeError as error:
        raise UnreadableError(
            tr("it is no JSON: {problem} in line {line}").format(problem=error.msg.lower(), line=error.lineno)
        ) from None
    except ValueError:
        raise UnreadableError(tr("a number in it has too many digits")) from None
    except RecursionError:
        raise UnreadableError(tr("it is nested too deep")) from None
    if _is_nested_deeper(data, MAX_DEPTH):
        raise UnreadableError(tr("it is nested too deep"))
    return data


def read_object(path: Path) -> dict[str, Any]:
    """The same where names and values are expected. Raises FileNotFoundError, UnreadableError."""
    return as_object(read_json(path))


def as_object(data: Any) -> dict[str, Any]:
    """`data`, where that is names and values. Raises UnreadableError."""
    if not isinstance(data, dict):
        raise UnreadableError(tr("it holds no names and values"))
    return data


def write_json(path: Path, data: Any) -> None:
    """Write `data` to `path` in one step: whoever reads meanwhile, or after a crash, finds the old file or the new.

    The file and a folder made for it are this user's alone. Raises StorageError.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:  # a folder's name that is no UTF-8: only escapes can say it
        content = (json.dumps(data, indent=2) + "\n").encode("ascii")
    write_bytes(path, content)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all, as `write_json` does. Raises StorageError."""
    with _as_storage_error(path):
        target = Path(os.path.realpath(path))  # a link stays a link
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace_atomically(target, content)


def keep_copy(path: Path, why: str = "bad") -> str:
    """Keep `path` as it is, byte for byte, under a name beside it; a sentence that says which."""
    try:
        content = _read_bytes(path)
        for number in range(1, MAX_COPIES):
            copy = backup_path(path, why, number)
            if not os.path.lexists(copy):
                _replace_atomically(copy, content)
            elif copy.read_bytes() != content:
                continue
            return tr("The file as it was is kept as {name} in {folder}.").format(name=copy.name, folder=path.parent)
    except (OSError, ValueError) as error:
        return tr("The file as it was could not be kept ({why}).").format(why=_error_text(error))
    return tr("There are {count} copies of it already, so it was not kept once more.").format(count=MAX_COPIES)


def set_aside(path: Path) -> str:
    """Give what stands in a file's place another name, so that a file can be written there; a sentence about it."""
    number = next((n for n in range(1, MAX_COPIES) if not os.path.lexists(backup_path(path, "bad", n))), MAX_COPIES)
    aside = backup_path(path, "bad", number)
    try:
        os.replace(path, aside)
    except OSError as error:
        return tr("It could not be set aside either ({why}).").format(why=_error_text(error))
    return tr("It was kept as {name} in {folder}.").format(name=aside.name, folder=path.parent)


def remove_stale_parts(folder: Path) -> None:
    """Remove what killed saves have left half-written."""
    with suppress(OSError):
        for path in folder.glob(f"*{PART_SUFFIX}"):  # hidden ones too
            about = path.lstat()
            if stat.S_ISREG(about.st_mode) and time.time() - about.st_mtime > STALE_SECONDS:
                path.unlink()


@contextmanager
def exclusive_writer(folder: Path) -> Iterator[None]:
    """Let no other process write in `folder` meanwhile. Raises StorageError where the folder cannot be made."""
    with _as_storage_error(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(folder):
        yield


def _read_bytes(path: Path) -> bytes:
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # reading a pipe would wait for ever
            raise UnreadableError(tr("it is no file"))
        if about.st_size > MAX_BYTES:
            raise UnreadableError(tr("it is larger than {size} MiB").format(size=MAX_BYTES >> 20))
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(_error_text(error)) from None


def _is_nested_deeper(data: Any, max_depth: int) -> bool:
    level = [data]
    for _ in range(max_depth + 1):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _children(outer)]
        if not level:
            return False
    return True


def _children(outer: dict[str, Any] | list[Any]) -> list[Any]:
    return list(outer.values()) if isinstance(outer, dict) else outer


def backup_path(path: Path, why: str, number: int) -> Path:
    """The name of a copy that is kept beside a file."""
    return path.with_name(f"{path.name}.{why}-{number}")


def _replace_atomically(path: Path, content: bytes) -> None:
    """Write beside, under a name that no other writer has, and take the place at once. Raises OSError."""
    handle, name = tempfile.mkstemp(PART_SUFFIX, f".{path.name}.", path.parent)  # readable by this user alone
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
    """Let the new name survive a power cut; a folder that cannot be synced has at least the file."""
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
            tr("{path} cannot be written: {why}.").format(path=path, why=_error_text(error)), remedy
        ) from error


def _error_text(error: Exception) -> str:
    """The system's words for what went wrong, without the path."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return words[:1].lower() + words[1:]


_DISK_FULL_REMEDY = mark("Make room on that disk; the next save tries again.")
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
