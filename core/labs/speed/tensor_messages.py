"""What the processes of tensor parallelism are told and tell: one line of JSON each."""

from __future__ import annotations

import msgspec


class Share(msgspec.Struct, frozen=True):
    """What one process is to do. Ranks count from 0."""

    folder: str
    """Of the model."""
    dtype: str
    rank: int
    processes: int
    port: int
    prompt: str
    tokens: int
    repeats: int


class Slice(msgspec.Struct, frozen=True, tag="slice"):
    """What a process held, wrote and how quickly, in tokens a second of each repeat."""

    bytes: int
    ids: list[int]
    speeds: list[float]


class Broke(msgspec.Struct, frozen=True, tag="broke"):
    """A process could not go on."""

    words: str


Message = Slice | Broke
_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def encoded(message: Message | Share) -> bytes:
    """One line."""
    return msgspec.json.encode(message) + b"\n"


def decoded(line: bytes) -> Message | None:
    """None for a line that is no message."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
