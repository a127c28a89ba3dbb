"""Reading the files of a model folder, which anybody may have made: regular files only, of a size that can be."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.errors import ModelFileError
from core.models.json_types import Json, JsonObject
from resources.language import tr

CONFIG_BYTES = 16 * 2**20
INDEX_BYTES = 256 * 2**20
_MAX_BYTES = {".json": 2**30, ".jinja": 2**20, ".txt": 2**30, ".py": 2**24}
"""Bytes that a file with such a name may have; weights may have any number."""
_MAX_DEPTH = 64
"""Levels of brackets. Libraries copy what they read by recursion, and Python ends after about a thousand calls."""


def is_file(file: Path) -> bool:
    """Whether a regular file is there; never raises, whatever the name."""
    return os.path.isfile(file)


def exists(path: Path) -> bool:
    """Return whether anything is there. Never raises, not even in a folder that may not be read."""
    return os.path.exists(path)


def size_of(file: Path) -> int:
    """Bytes of a file; 0 where there is none, or none that may be asked."""
    try:
        return file.stat().st_size
    except (OSError, ValueError):
        return 0


def read_bytes(file: Path, limit: int) -> bytes:
    """The whole of a regular file. Raises FileNotFoundError, and ModelFileError for whatever else is wrong."""
    try:
        about = file.stat()
        if (reason := _unreadable_reason(file, about, limit)) is not None:
            raise _unreadable_error(file, reason)
        return file.read_bytes()
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise _unreadable_error(file, str(error)) from error


def read_json(file: Path, limit: int = CONFIG_BYTES) -> JsonObject:
    """The JSON object in a file. Raises FileNotFoundError, and ModelFileError for whatever else is wrong."""
    try:
        data = json.loads(read_bytes(file, limit).decode("utf-8"))
    except (ValueError, RecursionError, MemoryError) as error:
        raise _unreadable_error(file, tr("not readable JSON: {error}").format(error=error)) from None
    if not isinstance(data, dict):
        raise _unreadable_error(file, tr("it does not hold a JSON object"))
    if _depth(data) > _MAX_DEPTH:
        raise _unreadable_error(file, tr("its brackets are nested more than {most} deep").format(most=_MAX_DEPTH))
    return data


def check_folder(path: Path) -> None:
    """That everything a library may open here is a regular file of a possible size. Raises ModelFileError.

    Libraries open files of a folder by their names: a named pipe among them would wait for ever, a device would never
    end.
    """
    for file in _contents(path):
        try:
            about = file.stat()
        except OSError:  # a link to nowhere is a missing file
            continue
        if stat.S_ISDIR(about.st_mode) and not file.suffix:
            continue
        limit = _MAX_BYTES.get(file.suffix, 2**50)
        if (reason := _unreadable_reason(file, about, limit)) is not None:
            raise _unreadable_error(file, reason)


def _contents(path: Path) -> Iterator[Path]:
    try:
        yield from path.iterdir()
        templates = path / "additional_chat_templates"
        if templates.is_dir():
            yield from templates.iterdir()
    except OSError as error:
        raise ModelFileError(
            tr("The folder {path} cannot be read: {reason}.").format(path=path, reason=error.strerror or error),
            tr("Check its permissions, or choose another."),
        ) from error


def _unreadable_reason(file: Path, about: os.stat_result, limit: int) -> str | None:
    if stat.S_ISDIR(about.st_mode):
        return tr("it is a folder")
    if not stat.S_ISREG(about.st_mode):
        return tr("it is a pipe, a socket or a device, not a regular file")
    if about.st_size > limit:
        return tr("it has {st_size:,} bytes, more than the {limit:,} that such a file may have").format(
            st_size=about.st_size, limit=limit
        )
    return None if os.access(file, os.R_OK) else tr("it may not be read (permission denied)")


def _unreadable_error(file: Path, reason: str) -> ModelFileError:
    return ModelFileError(
        tr("{file} cannot be used: {reason}.").format(file=file, reason=reason), tr("Copy or download the file again.")
    )


def _depth(data: Json) -> int:
    """Levels of nesting, without recursion."""
    level, depth = [data], 0
    while level and depth <= _MAX_DEPTH:
        depth += 1
        level = [item for value in level for item in _children(value) if isinstance(item, (dict, list))]
    return depth


def _children(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
