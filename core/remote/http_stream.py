"""One request and its reply as it comes; waiting is done beside it, so that a stop closes the connection at once."""

from __future__ import annotations

import http.client
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from core.remote.address import Address

_CHUNK_BYTES = 65_536
_POLL_SECONDS = 0.02
"""Seconds between two looks at whether somebody has asked to stop."""


_MAX_QUEUED = 64
"""Pieces of a reply that wait to be read."""


class CancelledError(Exception):
    """Somebody asked to stop; the connection is closed."""


class ReadTimeoutError(Exception):
    """Nothing came for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"nothing for {seconds:g} s")


class BrokenConnectionError(Exception):
    """The connection could not be made, or ended too early; `is_after_head`: after the reply had."""

    def __init__(self, error: Exception, begun: bool) -> None:
        self.error, self.is_after_head = error, begun
        super().__init__(str(error))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long is waited, in seconds, and how often is tried."""

    connect: float = 10.0
    first_byte: float = 300.0
    """For the reply to begin: a long prompt has to be read first."""
    between: float = 60.0
    """For more of it."""
    max_attempts: int = 4
    """Of requests that are answered with “later”, or with a fault of the engine's own."""
    pause: float = 0.5
    """Before the second try; doubled before each further one."""
    max_pause: float = 20.0
    """Also where the engine asks for more."""


class ResponseHead(NamedTuple):
    """How a reply begins; names of headers in small letters."""

    status: int
    headers: Mapping[str, str]


class HttpRequest(NamedTuple):
    """What is sent: method, path from the root of the machine, body and headers."""

    method: str
    path: str
    body: bytes | None
    headers: Mapping[str, str]


class HttpStream:
    """A connection of its own for one question. `close` ends it, from whichever thread."""

    def __init__(self, address: Address, request: HttpRequest, timeouts: Timeouts, cancel: threading.Event) -> None:
        self._address, self._request, self._timeouts, self._cancel = address, request, timeouts, cancel
        self._queue: queue.Queue[ResponseHead | bytes | Exception | None] = queue.Queue(_MAX_QUEUED)
        self._socket: socket.socket | None = None
        self._is_closed = False
        threading.Thread(target=self._run, name="engine", daemon=True).start()

    def head(self) -> ResponseHead:
        """How the reply begins. Raises StoppedError, SlowError, BrokenError."""
        came = self._next(self._timeouts.first_byte)
        assert isinstance(came, ResponseHead)
        return came

    def body(self) -> Iterator[bytes]:
        """The reply as it comes, to its end. Raises StoppedError, SlowError, BrokenError."""
        while (came := self._next(self._timeouts.between)) is not None:
            assert isinstance(came, bytes)
            yield came

    def close(self) -> None:
        """End the connection now, whatever it is doing."""
        self._is_closed = True
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed already
            self._socket.close()

    def _next(self, seconds: float) -> ResponseHead | bytes | None:
        end = time.monotonic() + seconds
        while True:
            if self._cancel.is_set():
                self.close()
                raise CancelledError
            try:
                came = self._queue.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if time.monotonic() > end:
                    self.close()
                    raise ReadTimeoutError(seconds) from None
                continue
            if isinstance(came, Exception):
                raise came
            return came

    def _run(self) -> None:
        """On a thread of its own: DNS, connecting and reading all wait."""
        begun, reply = False, None
        connection = _new_connection(self._address, self._timeouts.connect)
        try:
            reply = self._send(connection)
            begun = True
            self._put(ResponseHead(reply.status, {name.lower(): value for name, value in reply.getheaders()}))
            while data := reply.read1(_CHUNK_BYTES):
                if not self._put(data):
                    return
            self._put(None)
        except Exception as error:  # sockets, TLS and http.client each have their own
            self._put(BrokenConnectionError(error, begun))
        finally:
            if reply is not None:
                reply.close()  # it holds the socket until its end was read
            connection.close()

    def _put(self, came: ResponseHead | bytes | Exception | None) -> bool:
        """Hand on what came once there is room: a fast engine waits for the reader. False when closed."""
        while not self._is_closed:
            try:
                self._queue.put(came, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def _send(self, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        connection.connect()
        self._socket = connection.sock
        if self._is_closed:
            self.close()
        connection.sock.settimeout(None)  # from here on the other side of the queue waits, and shuts the socket
        method, path, body, headers = self._request
        connection.request(method, path, body, dict(headers))
        return connection.getresponse()


def _new_connection(address: Address, seconds: float) -> http.client.HTTPConnection:
    if address.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(address.host, address.port, timeout=seconds, context=context)
    return http.client.HTTPConnection(address.host, address.port, timeout=seconds)
