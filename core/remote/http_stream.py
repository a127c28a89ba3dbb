"""One request and its reply as it comes; waiting is done beside it, so that a stop closes the connection at once."""

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

from core.common.text import cut_short
from core.errors import (
    EngineAccessError,
    EngineBusyError,
    EngineCutError,
    EngineError,
    EngineRefusedError,
    EngineReplyError,
    EngineUnreachableError,
)
from core.remote.address import Address
from resources.language import tr, trn

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


_MAX_MESSAGE_LENGTH = 400
RETRY_STATUSES = frozenset({429, 500, 502, 503, 504, 529})
"""Statuses that another try may find changed."""


def redact(text: str, key: str) -> str:
    """`text` with nothing of the key in it."""
    return text.replace(key, "…") if key else text


def redacted_error(error: EngineError, key: str) -> EngineError:
    """The same error with nothing of the key in it."""
    return type(error)(redact(error.cause, key), error.remedy)


def error_message(data: bytes) -> str:
    """What an engine says of a refusal, in its own words, without its wrapping."""
    text = data.decode("utf-8", "replace").strip()
    try:
        found = _find_message(json.loads(text))
    except (ValueError, RecursionError):
        found = None
    return cut_short(" ".join((found or text).split()), _MAX_MESSAGE_LENGTH)


def _find_message(value: object) -> str | None:
    """The sentence inside `{"error": {"message": …}}`, `{"detail": …}`, `{"message": …}` and their like."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return next((found for item in value if (found := _find_message(item))), None)
    if isinstance(value, dict):
        return next(
            (found for name in ("error", "message", "detail", "msg") if (found := _find_message(value.get(name)))), None
        )
    return None


def status_error(status: int, data: bytes, place: str, key: str) -> EngineError:
    """A reply that is none. `place`: the machine's name."""
    words = redact(error_message(data), key)
    cause = tr("{place} answers {status}: {words}").format(place=place, status=status, words=words or "–")
    if status in (401, 403):
        remedy = tr("Give another key; this one is not accepted.") if key else tr("Give the engine's key.")
        return EngineAccessError(cause, remedy)
    if status == 404:
        return EngineRefusedError(cause, tr("Check the address, its path, and the name of the model."))
    if status == 429:
        return EngineBusyError(cause, tr("Try again in a while."))
    if status in RETRY_STATUSES:
        return EngineBusyError(cause, tr("Look at what the engine itself writes, or try again in a while."))
    if 300 <= status < 400:
        return EngineRefusedError(
            cause, tr("It leads elsewhere, where the key was not sent: give that address itself.")
        )
    return EngineRefusedError(cause, tr("Change the setting or the prompt that it names."))


def unreachable_error(error: BrokenConnectionError | ReadTimeoutError, place: str) -> EngineError:
    """Nothing was answered."""
    if isinstance(error, ReadTimeoutError):
        cause = trn(
            "{place} has not answered for {seconds:.0f} second.",
            "{place} has not answered for {seconds:.0f} seconds.",
            round(error.seconds),
        ).format(place=place, seconds=error.seconds)
        return EngineUnreachableError(cause, tr("Look whether the engine is still loading its model, then try again."))
    if isinstance(error.error, ssl.SSLError):
        cause = tr("{place} cannot be trusted, or does not speak https: {reason}.").format(
            place=place, reason=_reason(error)
        )
        return EngineUnreachableError(cause, tr("Check the address; http is for this machine, or where it is allowed."))
    cause = tr("{place} cannot be reached: {reason}.").format(place=place, reason=_reason(error))
    return EngineUnreachableError(cause, tr("Check the address, and whether the engine has been started."))


def interrupted_error(error: BrokenConnectionError | ReadTimeoutError | None, place: str) -> EngineCutError:
    """The text ended before its end; None: the connection was closed in good order."""
    if isinstance(error, ReadTimeoutError):
        cause = trn(
            "{place} has sent nothing more for {seconds:.0f} second.",
            "{place} has sent nothing more for {seconds:.0f} seconds.",
            round(error.seconds),
        ).format(place=place, seconds=error.seconds)
    elif error is not None:
        cause = tr("The connection to {place} broke in the middle of the text: {reason}.").format(
            place=place, reason=_reason(error)
        )
    else:
        cause = tr("{place} closed the connection in the middle of the text.").format(place=place)
    return EngineCutError(cause, tr("What came before is kept. Look at what the engine itself writes, then run again."))


def failed_error(words: str, place: str) -> EngineCutError:
    """The engine says in the middle of the text that it failed."""
    cause = tr("{place} failed in the middle of the text: {words}").format(place=place, words=words)
    return EngineCutError(cause, tr("What came before is kept. Look at what the engine itself writes, then run again."))


def unreadable_error(place: str, what: str, error: Exception | None = None) -> EngineReplyError:
    """It is no JSON, or other JSON than that face has; `error` is what reading it came upon, for the details."""
    shown = cut_short(" ".join(what.split()), 80)
    return EngineReplyError(
        tr("What {place} sends is not what an OpenAI-compatible engine sends: “{what}”.").format(
            place=place, what=shown
        ),
        tr("Check that the address is that of such an engine, with its path, most often /v1."),
        "".join(traceback.format_exception(error)) if error is not None else "",
    )


@contextmanager
def parsing_message(message: object, place: str) -> Iterator[None]:
    """For reading a message in the block. Raises EngineReplyError where it is JSON of another shape."""
    try:
        yield
    except (TypeError, ValueError, LookupError) as error:
        raise unreadable_error(place, _safe_str(message), error) from error


def _safe_str(message: object) -> str:
    try:
        return str(message)
    except RecursionError:  # nested too deep
        return "[[…]]"


def _reason(error: BrokenConnectionError) -> str:
    inner = error.error
    words = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(inner) or type(inner).__name__
    return words.rstrip(".")
