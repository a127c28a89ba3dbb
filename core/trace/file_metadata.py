"""What a file says before its first event: what was asked, of which model, with which versions, and when."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata

from core.common.text import cut_short
from core.errors import DecodescopeError
from core.events import ModelIdentity
from core.parameter import short_repr
from core.trace.block_reader import measure_value
from core.trace.packing import pack, unpack
from core.trace.schema import VERSION, FileLayout, layout_of, schema_description
from resources.language import tr

_MAX_TIMESTAMP = 253_402_300_799.0
"""The last second of the year 9999: no date is later."""
_LIBRARIES = ("decodescope", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a recorded run beside its events."""

    version: tuple[int, int]
    """(major, minor) of the format it was written in."""
    request: Mapping[str, object]
    """The fields of `core.Request` in plain values: settings by name, draft models by their names."""
    model: ModelIdentity | None
    """None where the run ended before it had begun."""
    versions: Mapping[str, str]
    """Of the program, Python, torch and transformers that wrote it; without those that were not there."""
    made: float
    """When it began: seconds since 1970, UTC."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """What the caller of `core.record` added, in JSON's own values."""


def write_header(
    request: Mapping[str, object], model: ModelIdentity | None, extra: Mapping[str, object], made: float
) -> bytes:
    """The header of a file that was begun at `made`, with this version's schema."""
    return pack({
        "version": list(VERSION),
        "schema": schema_description(),
        "request": request,
        "model": model,
        "versions": _library_versions(),
        "made": made,
        "extra": extra,
    })  # fmt: skip


def read_header(data: bytes) -> tuple[Header, FileLayout]:
    """The header, and how to read the events behind it. Raises ValueError."""
    match unpack(data):
        case {
            "version": [int(major), int(minor)],
            "schema": schema,
            "request": dict(request),
            "model": ModelIdentity() | None as model,
            "versions": dict(versions),
            "made": float(made),
            "extra": dict(extra),
        }:
            if not 0 <= made <= _MAX_TIMESTAMP:
                raise ValueError(tr("its header lacks something"))
            measure_value([request, extra])  # nothing too deep or too large to be shown
            told = {_short_text(name): _short_text(version) for name, version in versions.items()}
            return Header((major, minor), request, model, told, made, extra), layout_of(schema, (major, minor))
    raise ValueError(tr("its header lacks something"))


def _short_text(value: object) -> str:
    return cut_short(value if isinstance(value, str) else short_repr(value), 100)


@cache
def _library_versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


_MAX_MESSAGE_LENGTH = 4000
"""Characters of an error's words."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What ended a run that did not come to its end, in words."""

    kind: str
    """The error's class."""
    title: str
    cause: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class FileEnding:
    """What a writer that came to the end leaves behind the events."""

    events: int
    left_out: int
    """Events of classes that no file can hold."""
    failure: Failure | None = None


def failure_of(error: BaseException | None) -> Failure | None:
    """What a run raised, in words; None for one that ended, or that its reader closed."""
    if error is None or isinstance(error, GeneratorExit):
        return None
    kind = type(error).__name__
    if isinstance(error, DecodescopeError):
        return Failure(kind, error.title, error.cause, error.remedy)
    return Failure(kind, DecodescopeError.title, str(error) or kind)


def write_ending(ending: FileEnding) -> bytes:
    """The block."""
    return pack(asdict(ending))


def read_ending(data: bytes) -> FileEnding:
    """What the block says. Raises ValueError."""
    match unpack(data):
        case {"events": int(events), "left_out": int(left_out), "failure": failure}:
            return FileEnding(events, left_out, _parse_failure(failure))
    raise ValueError(tr("its end says nothing of the events"))


def _parse_failure(told: object) -> Failure | None:
    if not isinstance(told, Mapping):
        return None
    words = [told.get(name, "") for name in ("kind", "title", "cause", "remedy")]
    return Failure(*(cut_short(word, _MAX_MESSAGE_LENGTH) if isinstance(word, str) else "" for word in words))
