"""The measurement as lines of JSON, between the process that measures and the one that looks on."""

from __future__ import annotations

import msgspec

from core.labs.speed.events import EVENTS, Asked, Event


class Job(msgspec.Struct, frozen=True):
    """What the process is asked, and the language it gives reasons in."""

    asked: Asked
    language: str


class Failed(msgspec.Struct, frozen=True):
    """It could not go on: a TokenscopeError's words."""

    cause: str
    remedy: str
    details: str


class _Line(msgspec.Struct, frozen=True):
    kind: str
    value: msgspec.Raw


_KINDS: dict[str, type[Event] | type[Failed]] = {kind.__name__: kind for kind in (*EVENTS, Failed)}


def encoded(message: Event | Failed) -> bytes:
    """One line."""
    value = msgspec.Raw(msgspec.json.encode(message))
    return msgspec.json.encode(_Line(type(message).__name__, value)) + b"\n"


def decoded(line: bytes) -> Event | Failed | None:
    """None for a line that is no message: a process was ended in the middle of it."""
    try:
        found = msgspec.json.decode(line, type=_Line)
        kind = _KINDS.get(found.kind)
        return None if kind is None else msgspec.json.decode(found.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
