"""One HTTP request with a streamed response, read on a separate thread so that a cancellation closes the connection
immediately.

`http.client` suffices: httpx2 needs the same thread, because only a closed socket interrupts it, and takes five times
as long to import. Its reader of server-sent events drops `error:` lines and garbage, and replaces halves of characters.
"""

from __future__ import annotations

import http.client
import json
import queue
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from decodescope.core.common.text import cut_short
from decodescope.core.errors import (
    EngineAccessError,
    EngineBusyError,
    EngineCutError,
    EngineError,
    EngineRefusedError,
    EngineReplyError,
    EngineUnreachableError,
)
from decodescope.core.remote.address import Address
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr, trn

_CHUNK_BYTES = 65_536
_POLL_SECONDS = 0.02
"""Seconds between two checks for cancellation."""


_MAX_QUEUED = 64
"""Maximum number of unread chunks of a response."""


class CancelledError(Exception):
    """The request was cancelled and its connection closed."""


class ReadTimeoutError(Exception):
    """No data arrived for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"nothing for {seconds:g} s")


class BrokenConnectionError(Exception):
    """The connection failed or ended too early; `is_after_head` is True if the response had started."""

    def __init__(self, error: Exception, is_after_head: bool) -> None:
        self.error, self.is_after_head = error, is_after_head
        super().__init__(str(error))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in seconds, and retries."""

    connect: float = 10.0
    first_byte: float = 300.0
    """Until the response starts: a long prompt must be processed first."""
    between_chunks: float = 60.0
    """Between two chunks."""
    max_attempts: int = 4
    """Maximum number of attempts for requests answered with a retry status."""
    pause: float = 0.5
    """Pause before the second attempt; doubled for each further one."""
    max_pause: float = 20.0
    """Upper limit, also for Retry-After."""


class ResponseHead(NamedTuple):
    """Status and headers of a response; header names in lower case."""

    status: int
    headers: Mapping[str, str]


class HttpRequest(NamedTuple):
    """Method, path from the root of the machine, body and headers of a request."""

    method: str
    path: str
    body: bytes | None
    headers: Mapping[str, str]


class HttpStream:
    """A connection for one request. `close` ends it from any thread."""

    def __init__(self, address: Address, request: HttpRequest, timeouts: Timeouts, cancel: threading.Event) -> None:
        self._address, self._request, self._timeouts, self._cancel = address, request, timeouts, cancel
        self._queue: queue.Queue[ResponseHead | bytes | Exception | None] = queue.Queue(_MAX_QUEUED)
        self._socket: socket.socket | None = None
        self._is_closed = False
        threading.Thread(target=self._run, name="engine", daemon=True).start()

    def head(self) -> ResponseHead:
        """Return the head of the response. Raises CancelledError, ReadTimeoutError, BrokenConnectionError."""
        came = self._next(self._timeouts.first_byte)
        assert isinstance(came, ResponseHead)
        return came

    def body(self) -> Iterator[bytes]:
        """Yield the chunks of the response. Raises CancelledError, ReadTimeoutError, BrokenConnectionError."""
        while (came := self._next(self._timeouts.between_chunks)) is not None:
            assert isinstance(came, bytes)
            yield came

    def close(self) -> None:
        """Close the connection immediately."""
        self._is_closed = True
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed
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
        """Run the request on a separate thread, because DNS, connecting and reading block."""
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
        except Exception as error:  # sockets, TLS and http.client raise various errors
            self._put(BrokenConnectionError(error, begun))
        finally:
            if reply is not None:
                reply.close()  # it keeps the socket open until it has been read completely
            connection.close()

    def _put(self, message: ResponseHead | bytes | Exception | None) -> bool:
        """Queue a chunk; wait while the queue is full, so that a fast engine waits for the reader. Return False if
        closed.
        """
        while not self._is_closed:
            try:
                self._queue.put(message, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def _send(self, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
        connection.connect()
        self._socket = connection.sock
        if self._is_closed:
            self.close()
        connection.sock.settimeout(
            None
        )  # from here on, the reading side applies its own timeout and shuts the socket down
        method, path, body, headers = self._request
        connection.request(method, path, body, dict(headers))
        return connection.getresponse()


def _new_connection(address: Address, seconds: float) -> http.client.HTTPConnection:
    if address.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(address.host, address.port, timeout=seconds, context=context)
    return http.client.HTTPConnection(address.host, address.port, timeout=seconds)


_MAX_MESSAGE_LENGTH = 400
RETRY_STATUSES = frozenset({429, 500, 502, 503, 504, 529})
"""HTTP statuses that are worth a retry."""


def redact(text: str, key: str) -> str:
    """Remove the key from a text."""
    return text.replace(key, "…") if key else text


def redacted_error(error: EngineError, key: str) -> EngineError:
    """Return the error with the key removed."""
    return type(error)(redact(error.cause, key), error.remedy)


def error_message(data: bytes) -> str:
    """Return the error message in a response body, without its JSON wrapping."""
    text = data.decode("utf-8", "replace").strip()
    try:
        found = _find_message(json.loads(text))
    except (ValueError, RecursionError):
        found = None
    return cut_short(" ".join((found or text).split()), _MAX_MESSAGE_LENGTH)


def _find_message(value: object) -> str | None:
    """Find the message inside `{"error": {"message": …}}`, `{"detail": …}`, `{"message": …}` and similar forms."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return next((found for item in value if (found := _find_message(item))), None)
    if isinstance(value, dict):
        return next(
            (found for name in ("error", "message", "detail", "msg") if (found := _find_message(value.get(name)))), None
        )
    return None


def status_error(status: int, data: bytes, machine: str, key: str) -> EngineError:
    """Convert an error status to an error. `machine` is the display name of the machine."""
    words = redact(error_message(data), key)
    cause = tr("{place} responded with {status}: {words}").format(place=machine, status=status, words=words or "–")
    if status in (401, 403):
        remedy = tr("Enter another key; this one was rejected.") if key else tr("Enter the engine's key.")
        return EngineAccessError(cause, remedy)
    if status == 404:
        return EngineRefusedError(cause, tr("Check the address, its path and the name of the model."))
    if status == 429:
        return EngineBusyError(cause, tr("Try again in a while."))
    if status in RETRY_STATUSES:
        return EngineBusyError(cause, tr("Check the engine's own log, or try again in a while."))
    if 300 <= status < 400:
        return EngineRefusedError(
            cause, tr("It redirects to another address; the key was not sent there. Enter that address directly.")
        )
    return EngineRefusedError(cause, tr("Change the setting or the prompt named in the message."))


def unreachable_error(error: BrokenConnectionError | ReadTimeoutError, machine: str) -> EngineError:
    """Convert a failed connection to an error."""
    if isinstance(error, ReadTimeoutError):
        cause = trn(
            "{place} has not answered for {seconds:.0f} second.",
            "{place} has not answered for {seconds:.0f} seconds.",
            round(error.seconds),
        ).format(place=machine, seconds=error.seconds)
        return EngineUnreachableError(cause, tr("Check whether the engine is still loading its model, then try again."))
    if isinstance(error.error, ssl.SSLError):
        cause = tr("{place} has no valid certificate, or does not support https: {reason}.").format(
            place=machine, reason=_reason(error)
        )
        return EngineUnreachableError(
            cause,
            tr("Check the address. Plain http works only for this machine and for engines for which it is allowed."),
        )
    cause = tr("{place} cannot be reached: {reason}.").format(place=machine, reason=_reason(error))
    return EngineUnreachableError(cause, tr("Check the address, and whether the engine has been started."))


def interrupted_error(error: BrokenConnectionError | ReadTimeoutError | None, machine: str) -> EngineCutError:
    """Convert an interrupted response to an error; None means that the connection was closed normally."""
    if isinstance(error, ReadTimeoutError):
        cause = trn(
            "{place} has sent no more data for {seconds:.0f} second.",
            "{place} has sent no more data for {seconds:.0f} seconds.",
            round(error.seconds),
        ).format(place=machine, seconds=error.seconds)
    elif error is not None:
        cause = tr("The connection to {place} was lost during the text: {reason}.").format(
            place=machine, reason=_reason(error)
        )
    else:
        cause = tr("{place} closed the connection before the text was complete.").format(place=machine)
    return EngineCutError(cause, tr("The text so far is kept. Check the engine's own log, then run again."))


def failed_error(words: str, machine: str) -> EngineCutError:
    """Convert an error message in the middle of a stream to an error."""
    cause = tr("{place} failed during the text: {words}").format(place=machine, words=words)
    return EngineCutError(cause, tr("The text so far is kept. Check the engine's own log, then run again."))


def unreadable_error(machine: str, detail: str, error: Exception | None = None) -> EngineReplyError:
    """Return the error for a response that is not the expected JSON; `error` is the parsing error, for the details."""
    shown = cut_short(" ".join(detail.split()), 80)
    return EngineReplyError(
        tr("{place} sent data that is not a valid response of an OpenAI-compatible engine: “{what}”.").format(
            place=machine, what=shown
        ),
        tr("Check that the address belongs to such an engine and contains its path, usually /v1."),
        "".join(traceback.format_exception(error)) if error is not None else "",
    )


@contextmanager
def parsing_message(message: object, machine: str) -> Iterator[None]:
    """Parse a message within the block. Raises EngineReplyError if its JSON has another structure."""
    try:
        yield
    except (TypeError, ValueError, LookupError) as error:
        raise unreadable_error(machine, _safe_str(message), error) from error


def _safe_str(message: object) -> str:
    try:
        return str(message)
    except RecursionError:  # nested too deeply
        return "[[…]]"


def _reason(error: BrokenConnectionError) -> str:
    inner = error.error
    if isinstance(inner, http.client.IncompleteRead):  # an answer in chunks without its last one
        inner = ConnectionResetError()
    return system_error_reason(inner)
