"""HTTP client for an engine: headers, key and retries; reads a response as JSON or as a stream of messages."""

from __future__ import annotations

import codecs
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from decodescope.core.errors import EngineError
from decodescope.core.remote import http_stream
from decodescope.core.remote.address import Address, entered_key, find_key
from decodescope.core.remote.http_stream import (
    BrokenConnectionError,
    CancelledError,
    HttpRequest,
    HttpStream,
    ReadTimeoutError,
    ResponseHead,
    Timeouts,
)

_END_MARK = "[DONE]"
_MAX_LINE_BYTES = 16 * 2**20
_SHORT_TIMEOUT_SECONDS = 5.0


def parse_messages(body: Iterable[bytes], machine: str, has_json_lines: bool = False) -> Iterator[dict[str, object]]:
    """Yield each message as JSON, up to the end mark or the end: not every engine sends an end mark. With
    `has_json_lines`, each line is a message, not a server-sent event. Raises EngineCutError if the engine reports a
    failure, EngineReplyError for invalid data.
    """
    for data in _data_lines(body, machine, _json_line if has_json_lines else _line_data):
        if data == _END_MARK:
            return
        message = _parse_message(data, machine)
        if (words := _failure_message(message)) is not None:
            raise http_stream.failed_error(words, machine)
        yield message


def _data_lines(body: Iterable[bytes], machine: str, read_line: Callable[[bytes, str], str | None]) -> Iterator[str]:
    """Yield the JSON on each line. Invalid UTF-8 bytes become lone surrogates, because the next message may
    complete them.
    """
    rest = bytearray()  # grows in place, so that a line of many chunks is not copied for each of them
    for piece in body:
        first, *lines = piece.split(b"\n")
        rest += first
        if len(rest) > _MAX_LINE_BYTES:
            raise http_stream.unreadable_error(machine, rest[:200].decode("utf-8", "replace"))
        for line in lines:
            if (data := read_line(bytes(rest), machine)) is not None:
                yield data
            rest = bytearray(line)
    if (data := read_line(bytes(rest), machine)) is not None:
        yield data


def _json_line(line: bytes, _machine: str) -> str | None:
    return line.decode("utf-8", "surrogateescape").strip() or None


def _line_data(line: bytes, machine: str) -> str | None:
    text = line.decode("utf-8", "surrogateescape").strip()
    name, colon, value = text.partition(":")
    if not text or text.startswith(":") or name in ("event", "id", "retry"):
        return None
    if name == "error" and colon:  # format of llama.cpp's server
        return f'{{"error": {value}}}'
    if name != "data" or not colon:
        raise http_stream.unreadable_error(machine, text.encode("utf-8", "replace").decode("utf-8"))
    return value.strip() or None


def _parse_message(data: str, machine: str) -> dict[str, object]:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise http_stream.unreadable_error(machine, data.encode("utf-8", "replace").decode("utf-8"))
    return message


def _failure_message(message: dict[str, object]) -> str | None:
    """Return the engine's error message in the middle of a stream; None if there is none."""
    if not message.get("error"):
        return None
    return http_stream.error_message(json.dumps(message).encode())


class Utf8Joiner:
    """Joins consecutive texts into whole characters: an incomplete character waits for the rest."""

    def __init__(self) -> None:
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        self._high = ""

    def push(self, text: str) -> str:
        """Return the whole characters that `text` completes."""
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
        """Return the replacement character if a character is still incomplete."""
        high, self._high = self._high, ""
        return self._bytes.decode(b"", final=True) + ("\ufffd" if high else "")


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _surrogate_bytes(char: str) -> bytes:
    """Convert a surrogate-escaped byte to itself, and any other lone surrogate to the replacement character."""
    if "\udc80" <= char <= "\udcff":
        return bytes([ord(char) - 0xDC00])
    return "\ufffd".encode() if "\ud800" <= char <= "\udfff" else char.encode()


_MAX_ERROR_BYTES = 65_536
"""Maximum bytes read of an error response."""
_MAX_RESPONSE_BYTES = 64 * 2**20
"""Maximum bytes of a response that is read at once."""
_INTERNAL_SERVER_ERROR = 500


class InternalServerError(Exception):
    """Status 500 for a trial request. `error` is the error to report if there is no alternative."""

    def __init__(self, error: EngineError) -> None:
        self.error = error
        super().__init__(str(error))


class EngineClient:
    """Sends requests to one engine. The key is looked up for each request, not stored. With `is_search`, only a key
    entered since the start is sent, because the user has not named this address.
    """

    def __init__(self, address: Address, timeouts: Timeouts | None = None, *, is_search: bool = False) -> None:
        self.address, self.timeouts = address, timeouts or Timeouts()
        self.is_search, self._find_key = is_search, entered_key if is_search else find_key

    def get(self, path: str, cancel: threading.Event) -> tuple[object, ResponseHead]:
        """Return the JSON of a GET request and the head of the response. Raises EngineError, CancelledError."""
        return self._request_json(path, None, cancel)

    def post(self, path: str, body: Mapping[str, object], cancel: threading.Event) -> object:
        """Post JSON and return the JSON response. Raises EngineError, CancelledError."""
        return self._request_json(path, body, cancel)[0]

    def stream(
        self,
        path: str,
        body: Mapping[str, object],
        cancel: threading.Event,
        *,
        is_trial: bool = False,
        has_json_lines: bool = False,
    ) -> Iterator[dict[str, object]]:
        """Yield the messages of a streamed response up to its end mark. Raises EngineError, CancelledError; a busy
        engine is retried before the first message. With `is_trial` there is an alternative request: status 500 is not
        retried and raises InternalServerError. `has_json_lines`: see `parse_messages`.
        """
        exchange, _head = self._open(path, body, cancel, is_trial)
        with closing(exchange):
            try:
                yield from parse_messages(exchange.body(), self.address.place, has_json_lines)
            except (BrokenConnectionError, ReadTimeoutError) as error:
                raise http_stream.interrupted_error(error, self.address.place) from error
            except EngineError as error:
                raise http_stream.redacted_error(error, self._find_key(self.address)) from None

    def _request_json(
        self, path: str, body: Mapping[str, object] | None, cancel: threading.Event
    ) -> tuple[object, ResponseHead]:
        exchange, head = self._open(path, body, cancel)
        place = self.address.place
        with closing(exchange):
            try:
                data = _read_body(exchange, _MAX_RESPONSE_BYTES)
            except (BrokenConnectionError, ReadTimeoutError) as error:
                raise http_stream.unreachable_error(error, place) from error
        try:
            return json.loads(data), head
        except (ValueError, RecursionError):
            unreadable = http_stream.unreadable_error(place, data.decode("utf-8", "replace"))
            raise http_stream.redacted_error(unreadable, self._find_key(self.address)) from None

    def _open(
        self, path: str, body: Mapping[str, object] | None, cancel: threading.Event, is_trial: bool = False
    ) -> tuple[HttpStream, ResponseHead]:
        """Send a request, with retries, until it succeeds."""
        pause = self.timeouts.pause
        for attempt in range(1, self.timeouts.max_attempts + 1):
            exchange, head = self._send(path, body, cancel)
            if head.status < 300:
                return exchange, head
            error = self._read_error(exchange, head)
            if is_trial and head.status == _INTERNAL_SERVER_ERROR:
                raise InternalServerError(error)
            if head.status not in http_stream.RETRY_STATUSES or attempt == self.timeouts.max_attempts:
                raise error
            if cancel.wait(min(_retry_after(head) or pause, self.timeouts.max_pause)):
                raise CancelledError
            pause *= 2
        raise AssertionError

    def _send(
        self, path: str, body: Mapping[str, object] | None, cancel: threading.Event
    ) -> tuple[HttpStream, ResponseHead]:
        exchange = HttpStream(self.address, self._build_request(path, body), self.timeouts, cancel)
        try:
            return exchange, exchange.head()
        except (BrokenConnectionError, ReadTimeoutError) as error:
            exchange.close()
            raise http_stream.unreachable_error(error, self.address.place) from error

    def _build_request(self, path: str, body: Mapping[str, object] | None) -> HttpRequest:
        headers = {"Accept": "text/event-stream, application/json", "User-Agent": "decodescope", "Connection": "close"}
        if key := self._find_key(self.address):
            headers["Authorization"] = f"Bearer {_header_safe(key)}"
        if body is None:
            return HttpRequest("GET", path, None, headers)
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return HttpRequest("POST", path, data, {**headers, "Content-Type": "application/json"})

    def _read_error(self, exchange: HttpStream, head: ResponseHead) -> EngineError:
        with closing(exchange):
            try:
                data = _read_body(exchange, _MAX_ERROR_BYTES)
            except (BrokenConnectionError, ReadTimeoutError):
                data = b""
        return http_stream.status_error(head.status, data, self.address.place, self._find_key(self.address))


def _read_body(exchange: HttpStream, max_bytes: int) -> bytes:
    data = bytearray()
    for piece in exchange.body():
        data += piece
        if len(data) >= max_bytes:
            break
    return bytes(data[:max_bytes])


def _header_safe(key: str) -> str:
    """Return the characters of a key that are allowed in a header; valid keys have no others."""
    return "".join(char for char in key if 32 < ord(char) < 127)


def _retry_after(head: ResponseHead) -> float:
    """Return the seconds of the Retry-After header; 0 if there is none."""
    try:
        return max(0.0, float(head.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0


def short_timeout_client(client: EngineClient) -> EngineClient:
    """Return a client of the same engine with short timeouts, for requests that a run does not depend on."""
    timeouts = client.timeouts
    short = replace(
        timeouts,
        first_byte=min(timeouts.first_byte, _SHORT_TIMEOUT_SECONDS),
        between_chunks=min(timeouts.between_chunks, _SHORT_TIMEOUT_SECONDS),
        max_attempts=1,
    )
    return EngineClient(client.address, short, is_search=client.is_search)
