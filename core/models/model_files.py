"""Read files of a model folder from any source: only regular files of a plausible size."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeGuard

from decodescope.core.errors import CorruptWeightsError, ModelFileError, PickledWeightsError
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"


FileStats: TypeAlias = Mapping[str, os.stat_result]
"""Status of every entry of a folder by name, so that a list of thousands of models reads it once."""
CONFIG_BYTES = 16 * 2**20
INDEX_BYTES = 256 * 2**20
_MAX_BYTES = {".json": 2**30, ".jinja": 2**20, ".txt": 2**30, ".py": 2**24}
"""Maximum bytes of files by suffix; weights are unlimited."""
_MAX_DEPTH = 64
"""Maximum nesting of brackets. Libraries copy JSON recursively, and Python stops after about a thousand calls."""


def is_file(file: Path) -> bool:
    """Return whether a regular file exists; never raises, whatever the name."""
    return os.path.isfile(file)


def exists(path: Path) -> bool:
    """Return whether the path exists. Never raises, not even in an unreadable folder."""
    return os.path.exists(path)


def size_of(file: Path) -> int:
    """Return the size of a file in bytes; 0 if it is missing or inaccessible."""
    try:
        return file.stat().st_size
    except (OSError, ValueError):
        return 0


def read_bytes(file: str | Path, limit: int, about: os.stat_result | None = None) -> bytes:
    """Read a regular file with status `about`. Raises FileNotFoundError, and ModelFileError for other problems."""
    try:
        about = about or os.stat(file)
        if (reason := _unreadable_reason(about, limit)) is not None:
            raise _unreadable_error(file, reason)
        return read_start(file, limit)
    except FileNotFoundError:
        raise
    except PermissionError:
        raise _unreadable_error(file, tr("permission to read it was denied")) from None
    except (OSError, ValueError) as error:
        raise _unreadable_error(file, system_error_reason(error)) from error


_READ_BYTES = 2**16
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)


def read_start(file: str | Path, size: int) -> bytes:
    """Read at most `size` bytes from the start of a file. Raises OSError, ValueError.

    A list of thousands of models opens three files of each, and Python's file objects take twice as long.
    """
    descriptor, parts, missing = os.open(file, _OPEN_FLAGS), [], size
    try:
        while missing > 0 and (part := os.read(descriptor, min(missing, _READ_BYTES))):
            parts.append(part)
            missing -= len(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)


def read_json(file: str | Path, limit: int = CONFIG_BYTES, about: os.stat_result | None = None) -> JsonObject:
    """Read the JSON object in a file whose status is `about`. Raises FileNotFoundError, and ModelFileError for any
    other problem.
    """
    try:
        content = read_bytes(file, limit, about)
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError, MemoryError) as error:
        raise _unreadable_error(file, tr("not readable JSON: {error}").format(error=error)) from None
    if not isinstance(data, dict):
        raise _unreadable_error(file, tr("it does not contain a JSON object"))
    if content.count(b"{") + content.count(b"[") > _MAX_DEPTH < _depth(data):
        raise _unreadable_error(file, tr("it is nested more than {most} levels deep").format(most=_MAX_DEPTH))
    return data


def corrupt_weights_error(file: Path, reason: str, details: str = "") -> CorruptWeightsError:
    """Return the error for a weights file that cannot be read."""
    return CorruptWeightsError(
        tr("The weights file {file} is truncated or corrupt: {reason}.").format(file=file.name, reason=reason),
        tr("Copy or download it again; nothing was changed on disk."),
        details,
    )


def pickled_weights_error(model: str, file: Path) -> PickledWeightsError:
    """Return the error for pickled weights that are not allowed."""
    return PickledWeightsError(
        tr("{model} has only pickled weights ({file}). A pickle file can run arbitrary code when it is loaded.").format(
            model=model, file=file.name
        ),
        tr("Allow it for this model if you trust its source, or convert the weights to safetensors."),
    )


def check_folder(path: Path) -> None:
    """Check that every file that a library may open is a regular file of a plausible size. Raises ModelFileError.

    Libraries open files of a folder by name: a named pipe would block forever, and a device would never end.
    """
    for file in _contents(path):
        try:
            about = file.stat()
        except OSError:  # a dangling link counts as a missing file
            continue
        if stat.S_ISDIR(about.st_mode) and not file.suffix:
            continue
        limit = _MAX_BYTES.get(file.suffix, 2**50)
        reason = _unreadable_reason(about, limit)
        if reason is None and not os.access(file, os.R_OK):
            reason = tr("permission to read it was denied")
        if reason is not None:
            raise _unreadable_error(file, reason)


def _contents(path: Path) -> Iterator[Path]:
    try:
        yield from path.iterdir()
        templates = path / "additional_chat_templates"
        if templates.is_dir():
            yield from templates.iterdir()
    except OSError as error:
        raise ModelFileError(
            tr("The folder {path} cannot be read: {reason}.").format(path=path, reason=system_error_reason(error)),
            tr("Check its permissions, or choose another folder."),
        ) from error


def _unreadable_reason(about: os.stat_result, limit: int) -> str | None:
    if stat.S_ISDIR(about.st_mode):
        return tr("it is a folder")
    if not stat.S_ISREG(about.st_mode):
        return tr("it is a pipe, a socket or a device, not a regular file")
    if about.st_size > limit:
        return tr("it has {st_size:,} bytes, more than the {limit:,} allowed for such a file").format(
            st_size=about.st_size, limit=limit
        )
    return None


def _unreadable_error(file: str | Path, reason: str) -> ModelFileError:
    return ModelFileError(
        tr("{file} cannot be used: {reason}.").format(file=file, reason=reason), tr("Copy or download the file again.")
    )


def _depth(data: Json) -> int:
    """Return the nesting depth, without recursion."""
    level, depth = [data], 0
    while level and depth <= _MAX_DEPTH:
        depth += 1
        level = [item for value in level for item in _children(value) if isinstance(item, (dict, list))]
    return depth


def _children(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


_HEADER_BYTES = 100_000_000
"""Maximum header size that safetensors reads."""


class WeightFiles(NamedTuple):
    """The weight files of a model; `pickled` if there are no safetensors files."""

    files: tuple[Path, ...]
    pickled: bool

    @property
    def bytes(self) -> int:
        """Total size of all existing files."""
        return sum(size_of(file) for file in self.files)


class WeightTotals(NamedTuple):
    """Totals in the headers: tensors, and numbers in all of them."""

    tensors: int
    numbers: int


class TensorHeader(NamedTuple):
    """Entry of a tensor in a safetensors header."""

    shape: tuple[int, ...]
    data_offsets: tuple[int, int]
    """Its first byte and the one after its last, counted from the end of the header."""
    dtype: str = ""
    """safetensors' name of the dtype: F32, BF16 …; empty if it is missing."""


def find_weights(path: Path, stats: FileStats | None = None) -> WeightFiles:
    """Find safetensors files, or else pickled files; shards are listed by their index, including missing ones. As in
    transformers, an index is not read where there is one file with all weights.

    `stats` is the status of the folder's entries if it is known. Raises CorruptWeightsError if the index is invalid.
    """
    for single in ("model.safetensors", "pytorch_model.bin"):
        is_pickled, index = single.endswith(".bin"), f"{single}.index.json"
        if exists(path / single) if stats is None else single in stats:
            return WeightFiles((path / single,), is_pickled)
        if exists(path / index) if stats is None else index in stats:
            return WeightFiles(tuple(path / shard for shard in shard_names(path / index)), is_pickled)
    return WeightFiles((), False)


def shard_names(index: Path) -> list[str]:
    """Return the files listed in a weights index. Raises CorruptWeightsError."""
    try:
        named = read_json(index, INDEX_BYTES).get("weight_map")
    except (ModelFileError, FileNotFoundError) as error:
        raise CorruptWeightsError(str(error), tr("Copy or download the file again.")) from error
    names = [name for name in named.values() if _is_file_name(name)] if isinstance(named, dict) else []
    if not isinstance(named, dict) or not named or len(names) < len(named):
        raise CorruptWeightsError(
            tr("The weights index {index} does not list which file contains which tensor (weight_map).").format(
                index=index.name
            ),
            tr("Copy or download the file again."),
        )
    return sorted(set(names))


def _is_file_name(name: object) -> TypeGuard[str]:
    """Return whether it is the name of a file in the same folder."""
    return isinstance(name, str) and bool(name) and Path(name).name == name and "\0" not in name


def count_stored(weights: WeightFiles, stats: FileStats | None = None) -> WeightTotals | None:
    """Return the totals of the safetensors headers; None if a header is unreadable."""
    if weights.pickled or not weights.files:
        return None
    found = ((file, (stats or {}).get(file.name)) for file in weights.files)
    headers = [header for file, about in found if (header := read_header(file, about)) is not None]
    if len(headers) < len(weights.files):
        return None
    numbers = sum(math.prod(entry.shape) for header in headers for entry in header.values())
    return WeightTotals(sum(map(len, headers)), numbers)


def read_header(file: Path, about: os.stat_result | None = None) -> dict[str, TensorHeader] | None:
    """Return a safetensors file's entries by name; None if it is missing or an entry is invalid. `about` is the file's
    status if it is known.
    """
    try:
        about = about or os.stat(file)
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would block forever
            return None
        data = read_start(file, _READ_BYTES)
        length = int.from_bytes(data[:8], "little")
        if length > min(_HEADER_BYTES, about.st_size):
            return None
        if length + 8 > len(data):
            data = read_start(file, length + 8)
        entries = json.loads(data[8 : length + 8].decode())
        entries.pop("__metadata__", None)
        return {name: _tensor_header(entry) for name, entry in entries.items()}
    except (OSError, ValueError, RecursionError, AttributeError, KeyError, TypeError):
        return None


def _tensor_header(entry: object) -> TensorHeader:
    """Raises KeyError, TypeError and ValueError for an invalid entry."""
    if not isinstance(entry, dict):
        raise TypeError(entry)
    shape, offsets, dtype = entry["shape"], entry["data_offsets"], entry.get("dtype", "")
    start, end = offsets
    sizes = (*shape, start, end)
    if not isinstance(shape, list) or not all(type(one) is int and 0 <= one < 2**53 for one in sizes):
        raise ValueError(entry)
    if not isinstance(dtype, str):
        raise TypeError(dtype)
    return TensorHeader(tuple(shape), (start, end), dtype)


def damage_description(file: Path) -> str:
    """Return what is wrong with a file that safetensors cannot open, as far as its header is readable."""
    size, header = size_of(file), read_header(file)
    if header is None:
        return tr("its header cannot be read ({size:,} bytes in total)").format(size=size)
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
    expected = 8 + length + max((entry.data_offsets[1] for entry in header.values()), default=0)
    if size >= expected:
        return tr("its header contradicts its content ({size:,} bytes in total)").format(size=size)
    return tr("only {size:,} of {expected:,} bytes are present").format(size=size, expected=expected)


_PROGRAMMING_ERRORS = (
    TypeError, AttributeError, KeyError, IndexError, NameError, ZeroDivisionError, OverflowError, RecursionError,
    AssertionError, UnboundLocalError, StopIteration,
)  # fmt: skip
"""Python's own exceptions describe a programming error, not what is wrong with a file."""
_CLASS = re.compile(r"^(?:[A-Z]\w*(?:Error|Exception)): ")
_MAX_LENGTH = 300


def readable_reason(error: BaseException) -> str:
    """Return a clause that gives the reason, to follow a colon; the full `error` belongs into an error's `details`."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, KeyError) and error.args:
        name = str(error.args[0])
        return name[:_MAX_LENGTH] if " " in name else tr("“{name}” is missing or unknown").format(name=name[:60])
    if isinstance(error, UnicodeDecodeError):
        return tr("it contains bytes that are not text (UTF-8)")
    if type(error) in _PROGRAMMING_ERRORS or not lines:
        return tr("a value in it is missing or has the wrong type")
    return _CLASS.sub("", lines[-1])[:_MAX_LENGTH]


def is_library_failure(error: BaseException) -> bool:
    """Return whether a library failed, in Python or in Rust (whose panics are not an Exception), rather than an
    interruption.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def full_message(error: BaseException) -> str:
    """Return the full message with the exception type, for the details of an error."""
    return f"{type(error).__name__}: {error}"
