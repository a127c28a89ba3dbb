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
    BrokenError,
    HttpRequest,
    HttpStream,
    ResponseHead,
    SlowError,
    StoppedError,
    Timeouts,
)
from core.remote.sse import messages

_MOST_WORDS = 65_536
"""Bytes of a refusal that are read."""
_MOST_WHOLE = 64 * 2**20
"""Bytes of a reply that is read at once."""
_FAULT = 500


class FaultError(Exception):
    """Status 500 for a request that is not to be asked again as it is. `error`: as it would be told."""

    def __init__(self, error: EngineError) -> None:
        self.error = error
        super().__init__(str(error))


class Client:
    """Speaks to one engine. Holds no key: it is looked up for each request."""

    def __init__(self, address: Address, patience: Timeouts | None = None) -> None:
        self.address, self.patience = address, patience or Timeouts()

    def get(self, path: str, cancel: threading.Event) -> tuple[object, ResponseHead]:
        """JSON, and the head of the reply. Raises EngineError, StoppedError."""
        return self._whole(path, None, cancel)

    def post(self, path: str, body: Mapping[str, object], cancel: threading.Event) -> object:
        """JSON for JSON. Raises EngineError, StoppedError."""
        return self._whole(path, body, cancel)[0]

    def stream(
        self, path: str, body: Mapping[str, object], cancel: threading.Event, *, is_trial: bool = False
    ) -> Iterator[dict[str, object]]:
        """The messages of a reply that is streamed, up to its end mark. Raises EngineError, StoppedError; before the
        first message a busy engine is asked again. `is_trial`: there is another way to ask, so that a fault of the
        engine's own (500) is no reason to repeat this one, and raises FaultError."""
        exchange, _head = self._begin(path, body, cancel, is_trial)
        with closing(exchange):
            try:
                yield from messages(exchange.body(), self.address.place)
            except (BrokenError, SlowError) as error:
                raise engine_errors.cut(error, self.address.place) from error
            except EngineError as error:
                raise engine_errors.cleaned(error, find_key(self.address)) from None

    def _whole(
        self, path: str, body: Mapping[str, object] | None, cancel: threading.Event
    ) -> tuple[object, ResponseHead]:
        exchange, head = self._begin(path, body, cancel)
        place = self.address.place
        with closing(exchange):
            try:
                data = _collect(exchange, _MOST_WHOLE)
            except (BrokenError, SlowError) as error:
                raise engine_errors.unreachable(error, place) from error
        try:
            return json.loads(data), head
        except (ValueError, RecursionError):
            unreadable = engine_errors.unreadable(place, data.decode("utf-8", "replace"))
            raise engine_errors.cleaned(unreadable, find_key(self.address)) from None

    def _begin(
        self, path: str, body: Mapping[str, object] | None, cancel: threading.Event, is_trial: bool = False
    ) -> tuple[HttpStream, ResponseHead]:
        """A reply that is one, after as many tries as it takes."""
        pause = self.patience.pause
        for attempt in range(1, self.patience.tries + 1):
            exchange, head = self._try(path, body, cancel)
            if head.status < 300:
                return exchange, head
            error = self._refusal(exchange, head)
            if is_trial and head.status == _FAULT:
                raise FaultError(error)
            if head.status not in engine_errors.LATER or attempt == self.patience.tries:
                raise error
            if cancel.wait(min(_wished(head) or pause, self.patience.longest_pause)):
                raise StoppedError
            pause *= 2
        raise AssertionError

    def _try(
        self, path: str, body: Mapping[str, object] | None, cancel: threading.Event
    ) -> tuple[HttpStream, ResponseHead]:
        exchange = HttpStream(self.address, self._question(path, body), self.patience, cancel)
        try:
            return exchange, exchange.head()
        except (BrokenError, SlowError) as error:
            exchange.close()
            raise engine_errors.unreachable(error, self.address.place) from error

    def _question(self, path: str, body: Mapping[str, object] | None) -> HttpRequest:
        headers = {"Accept": "text/event-stream, application/json", "User-Agent": "decodescope", "Connection": "close"}
        if key := find_key(self.address):
            headers["Authorization"] = f"Bearer {_in_a_header(key)}"
        if body is None:
            return HttpRequest("GET", path, None, headers)
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return HttpRequest("POST", path, data, {**headers, "Content-Type": "application/json"})

    def _refusal(self, exchange: HttpStream, head: ResponseHead) -> EngineError:
        with closing(exchange):
            try:
                data = _collect(exchange, _MOST_WORDS)
            except (BrokenError, SlowError):
                data = b""
        return engine_errors.refusal(head.status, data, self.address.place, find_key(self.address))


def _collect(exchange: HttpStream, most: int) -> bytes:
    data = bytearray()
    for piece in exchange.body():
        data += piece
        if len(data) >= most:
            break
    return bytes(data[:most])


def _in_a_header(key: str) -> str:
    """What a header can hold of it: a key with anything else is none."""
    return "".join(char for char in key if 32 < ord(char) < 127)


def _wished(head: ResponseHead) -> float:
    """Seconds that the engine asks to be left alone; 0 where it does not say."""
    try:
        return max(0.0, float(head.headers.get("retry-after", "0")))
    except ValueError:
        return 0.0
