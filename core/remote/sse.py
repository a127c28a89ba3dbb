"""A streamed reply (server-sent events) as its messages, however the bytes are cut; and text that is cut inside a
character."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator

from core.remote import engine_errors

_END_MARK = "[DONE]"
_MAX_LINE_BYTES = 16 * 2**20


def parse_messages(body: Iterable[bytes], place: str) -> Iterator[dict[str, object]]:
    """Each message as JSON, up to the end mark or the end: not every engine has such a mark. Raises EngineCutError
    where the engine says that it failed, EngineReplyError for what cannot be read."""
    for data in _data_lines(body, place):
        if data == _END_MARK:
            return
        message = _parse_message(data, place)
        if (words := _failure_message(message)) is not None:
            raise engine_errors.failed_error(words, place)
        yield message


def _data_lines(body: Iterable[bytes], place: str) -> Iterator[str]:
    """What stands behind `data:` on each line. Bytes that are no UTF-8 stay as lone surrogates: the next message may
    complete them."""
    rest = bytearray()  # grows in place: a line of many pieces is never copied for each of them
    for piece in body:
        first, *lines = piece.split(b"\n")
        rest += first
        if len(rest) > _MAX_LINE_BYTES:
            raise engine_errors.unreadable_error(place, rest[:200].decode("utf-8", "replace"))
        for line in lines:
            if (data := _line_data(bytes(rest), place)) is not None:
                yield data
            rest = bytearray(line)
    if (data := _line_data(bytes(rest), place)) is not None:
        yield data


def _line_data(line: bytes, place: str) -> str | None:
    text = line.decode("utf-8", "surrogateescape").strip()
    name, colon, value = text.partition(":")
    if not text or text.startswith(":") or name in ("event", "id", "retry"):
        return None
    if name == "error" and colon:  # as llama.cpp's server says it
        return f'{{"error": {value}}}'
    if name != "data" or not colon:
        raise engine_errors.unreadable_error(place, text.encode("utf-8", "replace").decode("utf-8"))
    return value.strip() or None


def _parse_message(data: str, place: str) -> dict[str, object]:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise engine_errors.unreadable_error(place, data.encode("utf-8", "replace").decode("utf-8"))
    return message


def _failure_message(message: dict[str, object]) -> str | None:
    """What the engine says of its failing in the middle; None where it does not fail."""
    if not message.get("error"):
        return None
    return engine_errors.error_message(json.dumps(message).encode())


class Utf8Joiner:
    """Texts that follow each other, as whole characters: half of one waits for the other half."""

    def __init__(self) -> None:
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._high = ""

    def push(self, text: str) -> str:
        """The whole characters that `text` completes."""
        text = self._high + text
        self._high = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        text = text[: len(text) - len(self._high)]
        paired = (
            text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _has_surrogates(text) else text
        )
        return self._bytes.decode(
            b"".join(map(_surrogate_bytes, paired)) if _has_surrogates(paired) else paired.encode()
        )

    def flush(self) -> str:
        """What is still half, as the mark of a broken character."""
        high, self._high = self._high, ""
        return self._bytes.decode(b"", final=True) + ("\ufffd" if high else "")


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _surrogate_bytes(char: str) -> bytes:
    """A byte that was no UTF-8 as itself, any other lone surrogate as the mark of a broken character."""
    if "\udc80" <= char <= "\udcff":
        return bytes([ord(char) - 0xDC00])
    return "\ufffd".encode() if "\ud800" <= char <= "\udfff" else char.encode()
