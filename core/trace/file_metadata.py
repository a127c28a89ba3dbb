"""The header of a file: request, model, library versions and time."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata

from decodescope.core.common.text import cut_short
from decodescope.core.errors import DecodescopeError
from decodescope.core.events import ModelIdentity
from decodescope.core.parameter import short_repr
from decodescope.core.trace.block_reader import measure_value
from decodescope.core.trace.packing import pack, unpack
from decodescope.core.trace.schema import VERSION, FileLayout, layout_of, schema_description
from decodescope.resources.language import tr

_MAX_TIMESTAMP = 253_402_300_799.0
"""The last second of the year 9999, the maximum date."""
_LIBRARIES = ("decodescope", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Header:
    """The information on a recorded run besides its events."""

    version: tuple[int, int]
    """Format version (major, minor) of the file."""
    request: Mapping[str, object]
    """The fields of `core.Request` as plain values: settings by name, draft models by their names."""
    model: ModelIdentity | None
    """None if the run ended before it started."""
    versions: Mapping[str, str]
    """Versions of the program, Python, torch and transformers that wrote it, as far as installed."""
    made: float
    """Start time in seconds since 1970, UTC."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Added by the caller of `core.record`, as JSON values."""


def write_header(
    request: Mapping[str, object], model: ModelIdentity | None, extra: Mapping[str, object], created_at: float
) -> bytes:
    """Encode the header of a file started at `created_at`, with this version's schema."""
    return pack({
        "version": list(VERSION),
        "schema": schema_description(),
        "request": request,
        "model": model,
        "versions": _library_versions(),
        "made": created_at,
        "extra": extra,
    })  # fmt: skip


def read_header(data: bytes) -> tuple[Header, FileLayout]:
    """Decode the header and the layout of the events. Raises ValueError."""
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
                raise ValueError(tr("its header is incomplete"))
            measure_value([request, extra])  # rejects values too deep or too large to show
            short_versions = {_short_text(name): _short_text(version) for name, version in versions.items()}
            return Header((major, minor), request, model, short_versions, made, extra), layout_of(
                schema, (major, minor)
            )
    raise ValueError(tr("its header is incomplete"))


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
"""Maximum length of an error message, in characters."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that ended a run, as text."""

    kind: str
    """Class name of the error."""
    title: str
    cause: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class FileEnding:
    """Written after the events of a complete file."""

    events: int
    left_out: int
    """Number of events whose class the format does not support."""
    failure: Failure | None = None


def failure_of(error: BaseException | None) -> Failure | None:
    """Convert a run's exception to text; None for a run that ended normally or was closed by its reader."""
    if error is None or isinstance(error, GeneratorExit):
        return None
    kind = type(error).__name__
    if isinstance(error, DecodescopeError):
        return Failure(kind, error.title, error.cause, error.remedy)
    return Failure(kind, DecodescopeError.title, str(error) or kind)


def write_ending(ending: FileEnding) -> bytes:
    """Encode the block."""
    return pack(asdict(ending))


def read_ending(data: bytes) -> FileEnding:
    """Decode the block. Raises ValueError."""
    match unpack(data):
        case {"events": int(events), "left_out": int(left_out), "failure": failure}:
            return FileEnding(events, left_out, _parse_failure(failure))
    raise ValueError(tr("its last block does not contain the number of events"))


def _parse_failure(value: object) -> Failure | None:
    if not isinstance(value, Mapping):
        return None
    words = [value.get(name, "") for name in ("kind", "title", "cause", "remedy")]
    return Failure(*(cut_short(word, _MAX_MESSAGE_LENGTH) if isinstance(word, str) else "" for word in words))
