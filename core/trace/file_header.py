"""What a file says before its first event: what was asked, of which model, with which versions, and when."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata

from core.events import ModelIdentity
from core.parameter import short_repr
from core.text_truncation import cut_short
from core.trace.block_reader import measure_value
from core.trace.file_layout import FileLayout, layout_of, schema_description
from core.trace.packing import pack, unpack
from core.trace.schema import VERSION
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
