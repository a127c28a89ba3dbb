"""Send runs to an open window while they happen, through a local socket.

The window publishes its address and a random token (`core.trace.live_address`). Each run is one connection: the token
in a line, then the bytes of a recording; the window answers with a byte when it has the end. A thread of its own sends
them, so that a slow, closed or missing window never delays the run.
"""

from __future__ import annotations

import atexit
import contextlib
import socket
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from decodescope.core.events import Event, RunStarted
from decodescope.core.request import Request
from decodescope.core.trace.block_file import END, EVENTS, HEADER, BlockEncoder
from decodescope.core.trace.block_writer import BlockWriter
from decodescope.core.trace.file_metadata import Failure, FileEnding, write_ending, write_header
from decodescope.core.trace.live_address import RECEIVED, LiveAddress
from decodescope.core.trace.recorder import request_to_plain

_SEND_SECONDS = 0.05
"""Seconds between two blocks."""
_TIMEOUT_SECONDS = 5.0
"""Seconds after which a window that accepts nothing is given up."""
_EXIT_SECONDS = 2.0
"""Seconds that the end of the process waits for all runs to be sent."""
_MAX_BLOCK_EVENTS = 1000


class _Connection(Protocol):
    def sendall(self, data: bytes) -> None: ...

    def recv(self, count: int, /) -> bytes: ...

    def close(self) -> None: ...


class _Pipe:
    """A named pipe of Windows, with the methods of a socket."""

    def __init__(self, address: str) -> None:
        self._file = open(address, "r+b", buffering=0)

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]

    def recv(self, count: int, /) -> bytes:
        return self._file.read(count) or b""

    def close(self) -> None:
        self._file.close()


def is_window_open(window: LiveAddress) -> bool:
    """Return whether the window accepts connections: a program that was killed leaves its address behind."""
    try:
        _open_connection(window).close()
    except (OSError, ValueError):
        return False
    return True


def _connect(window: LiveAddress) -> _Connection:
    """Connect and send the token. Raises OSError."""
    connection = _open_connection(window)
    connection.sendall(window.token.encode() + b"\n")
    return connection


def _open_connection(window: LiveAddress) -> _Connection:
    if sys.platform == "win32":
        connection: _Connection = _Pipe(window.address)
    else:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_TIMEOUT_SECONDS)
        try:
            connection.connect(window.address)
        except OSError:
            connection.close()
            raise
    return connection


def _do_nothing() -> None:
    pass


class LiveRun:
    """Sends one run; `write` and `close` return at once and never raise."""

    def __init__(self, window: LiveAddress, request: Request, extra: Mapping[str, object] | None = None) -> None:
        """`extra`: JSON values for the header."""
        self._window, self._request, self._extra = window, request, dict(extra or {})
        self.is_sent = False
        """Whether the window has said that it has everything; bytes on the way are lost with a window that ends."""
        self.on_sent: Callable[[], None] = _do_nothing
        """Called in the sending thread at that time."""
        self._pending = deque[Event]()
        self._wake = threading.Event()
        self._closed = self._is_lost = False
        self._failure: Failure | None = None
        self._written = 0
        self._writer, self._encoder = BlockWriter(), BlockEncoder()
        self._made = time.time()
        self._thread = threading.Thread(target=self._send_all, name="live run", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the process is ending
            self._is_lost = True
        else:
            _unfinished.add(self)

    def write(self, event: Event) -> None:
        """Queue an event."""
        if not self._is_lost:
            self._pending.append(event)
            self._wake.set()

    def close(self, failure: Failure | None) -> None:
        """End the run, with the error that ended it, if any."""
        self._failure, self._closed = failure, True
        self._wake.set()

    def join(self, seconds: float) -> None:
        """Wait until everything is sent, at most `seconds`."""
        self._thread.join(max(seconds, 0.0))

    def _send_all(self) -> None:
        try:
            connection = _connect(self._window)
        except (OSError, ValueError):
            self._give_up()
            return
        try:
            self._send_blocks(connection)
        except Exception:  # the window was closed, is stuck, or an event cannot be encoded
            self._give_up()
        finally:
            with contextlib.suppress(OSError):
                connection.close()

    def _send_blocks(self, connection: _Connection) -> None:
        connection.sendall(self._encoder.start)
        has_header = False
        while True:
            self._wake.wait()
            self._wake.clear()
            is_last = self._closed  # read before the events, which precede it
            events = [self._pending.popleft() for _ in range(len(self._pending))]
            if not has_header and (events or is_last):
                has_header = True
                identity = next((event.identity for event in events if isinstance(event, RunStarted)), None)
                header = partial(write_header, request_to_plain(self._request), identity, self._extra, self._made)
                connection.sendall(self._encoder.encode(HEADER, header()))
            known = [event for event in events if self._writer.can_write(event)]
            for start in range(0, len(known), _MAX_BLOCK_EVENTS):
                block = self._writer.encode_block(known[start : start + _MAX_BLOCK_EVENTS])
                connection.sendall(self._encoder.encode(EVENTS, block))
            self._written += len(known)
            if is_last and not self._pending:
                ending = write_ending(FileEnding(self._written, 0, self._failure))
                connection.sendall(self._encoder.encode(END, ending))
                if connection.recv(len(RECEIVED)) != RECEIVED:
                    raise ConnectionResetError  # the window was closed before it had the end
                self.is_sent = True
                self.on_sent()
                return
            time.sleep(_SEND_SECONDS)

    def _give_up(self) -> None:
        self._is_lost = True
        self._pending.clear()


_unfinished: weakref.WeakSet[LiveRun] = weakref.WeakSet()


@atexit.register
def finish_sending() -> None:
    """Wait for the ends of all runs, at most two seconds."""
    deadline = time.monotonic() + _EXIT_SECONDS
    for run in list(_unfinished):
        run.join(deadline - time.monotonic())
