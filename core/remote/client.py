"""Asking an engine: headers, key, tries and their pauses; a reply whole, or as a stream of its messages."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing

from core.errors import EngineError
from core.remote import engine_errors
from core.remote.address import Address
from core.remote.api_keys import find_key
from core.remote.http_stream import (
    BrokenConnectionError,
    CancelledError,
    HttpRequest,
    HttpStream,
    ReadTimeoutError,
    ResponseHead,
    Timeouts,
)
from core.remote.sse import parse_messages

_MAX_ERROR_BYTES = 65_536
"""Bytes of a refusal that are read."""
_MAX_RESPONSE_BYTES = 64 * 2**20
"""Bytes of a reply that is read at once."""
_INTERNAL_SERVER_ERROR = 500


class InternalServerError(Exception):
    """Status 500 for a request that is not to be asked again as it is. `error`: as it would be told."""

    def __init__(self, error: EngineError) -> None:
        self.error = error
        super().__init__(str(error))


class EngineClient:
    """Speaks to one engine. Holds no key: it is looked up for each request."""

    def __init__(self, address: Address, timeouts: Timeouts | None = None) -> None:
        self.address, self.timeouts = address, timeouts or Timeouts()

    def get(self, path: str, cancel: threading.Event) -> tuple[object, ResponseHead]:
        """JSON, and the head of the reply. Raises EngineError, StoppedError."""
        return self._request_json(path, None, cancel)

    def post(self, path: str, body: Mapping[str, object], cancel: threading.Event) -> object:
        """JSON for JSON. Raises EngineError, StoppedError."""
        return self._request_json(path, body, cancel)[0]

    def stream(
        self, path: str, body: Mapping[str, object], cancel: threading.Event, *, is_trial: bool = False
    ) -> Iterator[dict[str, object]]:
        """The messages of a reply that is streamed, up to its end mark. Raises EngineError, StoppedError; before the
        first message a busy engine is asked again. `is_trial`: there is another way to ask, so that a fault of the
        engine's own (500) is no reason to repeat this one, and raises FaultError."""
        exchange, _head = self._open(path, body, cancel, is_trial)
        with closing(exchange):
            try:
                yield from parse_messages(exchange.body(), self.address.place)
            except (BrokenConnectionError, ReadTimeoutError) as error:
                raise engine_errors.interrupted_error(error, self.address.place) from error
            except EngineError as error:
                raise engine_errors.redacted_error(error, find_key(self.address)) from None

    def _request_json(
        self, path: str, body: Mapping[str, object] | None, cancel: threading.Event
    ) -> tuple[object, ResponseHead]:
        exchange, head = self._open(path, body, cancel)
        place = self.address.place
        with closing(exchange):
            try:
                data = _read_body(exchange, _MAX_RESPONSE_BYTES)
            except (BrokenConnectionError, ReadTimeoutError) as error:
                raise engine_errors.unreachable_error(error, place) from error
        try:
            return json.loads(data), head
        except (ValueError, RecursionError):
            unreadable = engine_errors.unreadable_error(place, data.decode("utf-8", "replace"))
            raise engine_errors.redacted_error(unreadable, find_key(self.address)) from None

    def _open(
        self, path: str, body: Mapping[str, object] | None, cancel: threading.Event, is_trial: bool = False
    ) -> tuple[HttpStream, ResponseHead]:
        """A reply that is one, after as many tries as it takes."""
        pause = self.timeouts.pause
        for attempt in range(1, self.timeouts.max_attempts + 1):
            exchange, head = self._send(path, body, cancel)
            if head.status < 300:
                return exchange, head
            error = self._read_error(exchange, head)
            if is_trial and head.status == _INTERNAL_SERVER_ERROR:
                raise InternalServerError(error)
            if head.status not in engine_errors.RETRY_STATUSES or attempt == self.timeouts.max_attempts:
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
            raise engine_errors.unreachable_error(error, self.address.place) from error

    def _build_request(self, path: str, body: Mapping[str, object] | None) -> HttpRequest:
        headers = {"Accept": "text/event-stream, application/json", "User-Agent": "decodescope", "Connection": "close"}
        if key := find_key(self.address):
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
        return engine_errors.status_error(head.status, data, self.address.place, find_key(self.address))


def _read_body(exchange: HttpStream, max_bytes: int) -> bytes:
    data = bytearray()
    for piece in exchange.body():
        data += piece
        if len(data) >= max_bytes:
            break
    return bytes(data[:max_bytes])


def _header_safe(key: str) -> str:
    """What a header can hold of it: a key with anything else is none."""
    return "".join(char for char in key if 32 < ord(char) < 127)


def _retry_after(head: ResponseHead) -> float:
    """Seconds that the engine asks to be left alone; 0 where it does not say."""
    try:
        return max(0.0, float(head.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0
