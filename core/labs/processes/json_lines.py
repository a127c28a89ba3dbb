"""Messages between a process and whoever started it: each one line of JSON that names its class."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

M = TypeVar("M")


class _JsonLine(msgspec.Struct, frozen=True):
    kind: str
    value: msgspec.Raw


class JsonLines(Generic[M]):
    """Messages of these classes, msgspec's structs or dataclasses, as lines and back."""

    def __init__(self, *kinds: type[Any]) -> None:
        self._kinds = {kind.__name__: kind for kind in kinds}

    def encode(self, message: M) -> bytes:
        """One line."""
        value = msgspec.Raw(msgspec.json.encode(message))
        return msgspec.json.encode(_JsonLine(type(message).__name__, value)) + b"\n"

    def decode(self, line: bytes) -> M | None:
        """None for a line that is no message: a process was ended in the middle of it."""
        try:
            found = msgspec.json.decode(line, type=_JsonLine)
            kind = self._kinds.get(found.kind)
            return None if kind is None else msgspec.json.decode(found.value, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
