"""The last block of a file: how many events there are, and what ended the run where it did not end by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from core.errors import DecodescopeError
from core.text_truncation import cut_short
from core.trace.packing import pack, unpack
from resources.language import tr

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
