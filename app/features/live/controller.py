"""Receive the runs of scripts (`decodescope.capture(…, live=True)`, `decodescope watch`) through a local socket."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication

from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.core.errors import DecodescopeError, TraceError
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from PySide6.QtNetwork import QLocalServer, QLocalSocket

    from decodescope.core.events import Event
    from decodescope.core.trace import LiveAddress, TraceStream

log = logging.getLogger(__name__)

_MAX_TOKEN_BYTES = 200
_MAX_TOKEN_SECONDS = 5.0
"""Seconds until a connection that has not sent the token is closed; silent ones would keep senders out."""
_CONFIRM_MS = 500
_MAX_CONNECTIONS = 64
_MAX_PATH_BYTES = 100
"""Of a Unix socket: `sun_path` has 108 bytes on Linux and 104 on macOS."""
TITLE = mark("Run of a script")


class LiveRuns(QObject):
    """Listens for runs of scripts and shows them. `noticed(text, title)` is emitted at the start of each."""

    noticed = Signal(str, str)

    def __init__(
        self, session: Session, recording_path: Callable[[Run], Path | None], save: Callable[[Run, Path], None]
    ) -> None:
        """`recording_path` returns the file for a run that is kept; `save` adds the complete file to the history."""
        super().__init__(session)
        self.session, self.recording_path, self.save = session, recording_path, save
        self._server: QLocalServer | None = None
        self._folder: Path | None = None
        self.address: LiveAddress | None = None
        """Where senders connect; None before `listen`."""
        self._connections: list[_LiveConnection] = []

    def listen(self) -> bool:
        """Publish an address and accept senders from now on; return False if this system does not allow it."""
        from PySide6.QtNetwork import QLocalServer  # the window starts faster without it

        from decodescope.core.trace import LiveAddress

        if self._server is not None:
            return True
        server = QLocalServer(self)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        try:
            address = LiveAddress.create(self._new_path())
            if not server.listen(address.address):
                raise OSError(server.errorString())
            address.publish()
        except OSError as error:
            log.warning("Scripts cannot send runs to this window: %s", error)
            server.close()
            self._delete_folder()
            return False
        server.newConnection.connect(self._accept)
        self._server, self.address = server, address
        application = QGuiApplication.instance()
        if isinstance(application, QGuiApplication):
            application.applicationStateChanged.connect(self._on_application_state)
        return True

    @Slot(Qt.ApplicationState)
    def _on_application_state(self, state: Qt.ApplicationState) -> None:
        """Receive the runs of scripts again if another window, which may be closed by now, was the last to do so."""
        from decodescope.core.trace import LiveAddress

        if state == Qt.ApplicationState.ApplicationActive and self.address not in (None, LiveAddress.find()):
            with suppress(OSError):
                self.address.publish()

    def close(self) -> None:
        """Stop listening; runs in progress end here with the text so far."""
        if self.address is not None:
            self.address.withdraw()
            self.address = None
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.end()
        self._delete_folder()

    def forget(self, connection: _LiveConnection) -> None:
        """Remove a connection that has ended."""
        if connection in self._connections:
            self._connections.remove(connection)

    def _new_path(self) -> str:
        """Return the path of the socket, in a folder that only this user can enter; on Windows the name of a pipe.

        Raises OSError if no temporary folder can be written to and has a path that is short enough.
        """
        for place in (None, os.environ.get("XDG_RUNTIME_DIR") or None, "/tmp"):
            with suppress(OSError):
                self._folder = Path(tempfile.mkdtemp(prefix="decodescope-live-", dir=place))
                if sys.platform == "win32":
                    return rf"\\.\pipe\{self._folder.name}"
                if len(os.fsencode(path := self._folder / "socket")) <= _MAX_PATH_BYTES:
                    return str(path)
                self._delete_folder()
        raise OSError(
            "No temporary folder can be written to and has a path short enough for a socket. Set TMPDIR to a short one."
        )

    def _delete_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @Slot()
    def _accept(self) -> None:
        while self._server is not None and (socket := self._server.nextPendingConnection()) is not None:
            if len(self._connections) >= _MAX_CONNECTIONS or self.address is None:
                socket.abort()
                socket.deleteLater()
                continue
            connection = _LiveConnection(self, socket, self.address.token)
            self._connections.append(connection)
            connection.read()
            if socket.state() == socket.LocalSocketState.UnconnectedState:  # it has emitted `disconnected` already
                connection.end()


class _LiveConnection(QObject):
    """One run being received."""

    def __init__(self, owner: LiveRuns, socket: QLocalSocket, token: str) -> None:
        super().__init__(owner)
        self._owner, self._socket, self._token = owner, socket, token
        socket.setParent(self)
        self._line = bytearray()
        """The bytes before the end of the first line."""
        self._stream: TraceStream | None = None
        self._run: Run | None = None
        self._bytes = bytearray()
        """Bytes that are not in the run's file yet."""
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._is_over = False
        socket.readyRead.connect(self.read)
        socket.disconnected.connect(self.end)
        QTimer.singleShot(int(1000 * _MAX_TOKEN_SECONDS), self, self._end_without_token)

    @Slot()
    def _end_without_token(self) -> None:
        if self._stream is None and not self._is_over:
            log.warning("A connection that did not send the window's token was closed")
            self._close()

    @Slot()
    def read(self) -> None:
        """Receive what has arrived."""
        data = bytes(self._socket.readAll().data())
        if self._is_over or not data:
            return
        if self._stream is None:
            self._line += data
            import hmac  # the window starts faster without it

            line, found, rest = bytes(self._line).partition(b"\n")
            if not found and len(self._line) <= _MAX_TOKEN_BYTES:
                return
            if not found or not hmac.compare_digest(line, self._token.encode()):
                log.warning("A connection without the window's token was refused")
                self._close()
                return
            from decodescope.core.trace import TraceStream

            self._stream, data = TraceStream(tr("The run of a script")), rest
        try:
            self._receive(data)
        except DecodescopeError as error:
            log.warning("A script sent something that is not a run: %s", error)
            self.end()

    def _receive(self, data: bytes) -> None:
        assert self._stream is not None
        events = self._stream.feed(data)
        if self._run is None and events:
            self._begin(events)
        self._store(data)
        if self._run is not None and events:
            self._owner.session.receive(self._run, events)
        if self._stream.is_complete:
            self.end()

    def _begin(self, events: list[Event]) -> None:
        from decodescope.app.state.recorded_run import recorded_request
        from decodescope.core.events import RunStarted
        from decodescope.core.trace import Trace

        assert self._stream is not None
        assert self._stream.header is not None
        self._run = run = Run(recorded_request(Trace(self._stream.header, events)))
        self._path = self._owner.recording_path(run)
        is_shown = self._owner.session.follow(run)
        name = next((event.model for event in events if isinstance(event, RunStarted)), "")
        captured = self._stream.header.extra.get("captured")
        is_inner = isinstance(captured, dict) and bool(captured.get("parent"))
        if self._stream.header.extra.get("served"):
            text = tr("A request to the server runs {model}.")
        elif is_inner:
            text = tr("A script runs {model} inside another run; see it in the history.")
        elif is_shown:
            text = tr("A script runs {model}.")
        else:
            text = tr("A script runs {model}; see its run in the history.")
        self._owner.noticed.emit(text.format(model=name), tr(TITLE))

    def _store(self, data: bytes) -> None:
        """Append the bytes, which are those of a recording, to the run's file; those before the run wait for it."""
        self._bytes += data
        if self._run is None:
            return
        if self._path is not None:
            try:
                self._file = self._file or open(self._path, "wb")
                self._file.write(self._bytes)
            except OSError as error:
                log.warning("The run of a script is not kept: %s", error)
                self._discard_file()
        self._bytes.clear()

    def _discard_file(self) -> None:
        """Delete the incomplete file; the run is shown without being kept."""
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
            if self._path is not None:
                self._path.unlink(missing_ok=True)
        self._path = self._file = None

    @Slot()
    def end(self) -> None:
        """End the run: the script has sent everything, or is gone."""
        from decodescope.app.state.recorded_run import recorded_outcome
        from decodescope.core.trace import Trace

        if self._is_over:
            return
        self._is_over = True
        if self._file is not None:
            try:
                self._file.close()
            except OSError:  # its last bytes did not fit on the disk
                self._discard_file()
        if self._run is not None and self._stream is not None and self._stream.header is not None:
            trouble = None if self._stream.is_complete else truncated_run_error()
            trace = Trace(self._stream.header, self._run.events, trouble, self._stream.failure)
            self._owner.session.end_followed(self._run, recorded_outcome(self._run, trace))
            if self._path is not None:
                self._owner.save(self._run, self._path)
        if self._stream is not None and self._stream.is_complete:
            self._confirm()
        self._close()

    def _confirm(self) -> None:
        """Confirm to the script that the window has its run; until then, the script keeps it too."""
        from decodescope.core.trace import RECEIVED

        self._socket.write(RECEIVED)
        self._socket.flush()
        if self._socket.bytesToWrite():  # a pipe of Windows writes in the background
            self._socket.waitForBytesWritten(_CONFIRM_MS)

    def _close(self) -> None:
        self._is_over = True
        self._owner.forget(self)
        self._socket.disconnected.disconnect(self.end)
        self._socket.abort()
        self.deleteLater()


def truncated_run_error() -> TraceError:
    """Return the reason why a run is incomplete: its script ended or was killed."""
    return TraceError(
        tr("The script ended before its run did."), tr("The text so far is shown."),
    )  # fmt: skip
