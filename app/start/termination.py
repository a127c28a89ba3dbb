"""Shut the program down cleanly on operating-system signals: save everything, stop runs, close files.

Python calls its handlers only between two of its own instructions, and while Qt waits for events there are none. The
interpreter therefore also writes the signal's number to a socket (`signal.set_wakeup_fd`), which Qt watches.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, QSocketNotifier, Signal, Slot
from PySide6.QtGui import QGuiApplication

from decodescope.app.window.main_window import MainWindow

SIGNAL_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Names missing on a platform are skipped: Windows has no SIGHUP, other systems have no SIGBREAK."""
CONSOLE_TIMEOUT = 4.5
"""Seconds that closing Windows' console is delayed before the program ends; Windows allows five."""


class TerminationSignals(QObject):
    """Emit `received(number)` for the first signal; a second signal ends the process at once, as by default.

    The handlers and the socket exist from `start` to `stop`, on the main thread only.
    """

    received = Signal(int)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.number = 0
        """The received signal; 0 before the first one."""
        self._previous_handlers: dict[int, object] = {}
        self._wakeup = -1
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        self._notifier: QSocketNotifier | None = None
        self._console: _ConsoleHandler | None = None

    def start(self) -> None:
        """Install the handlers and the socket."""
        reader, writer = socket.socketpair()
        for end in (reader, writer):
            end.setblocking(False)
        self._sockets = reader, writer
        self._notifier = QSocketNotifier(reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_readable)
        self._wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in _available_signals():
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                self._previous_handlers[number] = signal.signal(number, self._on_signal)
        if sys.platform == "win32":
            self._console = _ConsoleHandler(writer)

    def stop(self) -> None:
        """Restore the previous handlers. A signal that arrives later ends the process."""
        if self._sockets is None:
            return
        for number, handler in self._previous_handlers.items():
            signal.signal(number, signal.SIG_DFL if self.number else handler)  # type: ignore[arg-type]  # either is a handler
        self._previous_handlers = {}
        signal.set_wakeup_fd(self._wakeup)
        if self._notifier is not None:
            self._notifier.setEnabled(False)
        for end in self._sockets:
            end.close()
        self._sockets = None
        if self._console is not None:
            self._console.release()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal in the interpreter; Qt is notified through the socket."""
        self.number = self.number or number
        for each in self._previous_handlers:
            signal.signal(each, signal.SIG_DFL)

    @Slot()
    def _on_readable(self) -> None:
        if self._sockets is None:
            return
        numbers = self._sockets[0].recv(64)
        if self._notifier is not None:
            self._notifier.setEnabled(False)  # one signal is enough
        self.number = self.number or numbers[0]
        self.received.emit(self.number)


def exit_code(number: int) -> int:
    """Return the exit code by which a shell reports an end by this signal."""
    return 128 + number


def _available_signals() -> list[signal.Signals]:
    return [getattr(signal, name) for name in SIGNAL_NAMES if hasattr(signal, name)]


class _ConsoleHandler:
    """Delay the closing of Windows' console until the program has saved: the process ends when the handler returns."""

    def __init__(self, writer: socket.socket) -> None:
        import ctypes

        self._done = threading.Event()

        def ended(kind: int) -> bool:
            if kind < 2:  # Ctrl+C and Ctrl+Break arrive as signals
                return False
            writer.send(bytes([signal.SIGTERM]))
            self._done.wait(CONSOLE_TIMEOUT)
            return True

        kind = ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint)  # type: ignore[attr-defined,unused-ignore]  # Windows
        self._handler: Callable[[int], int] = kind(ended)
        self._set = ctypes.windll.kernel32.SetConsoleCtrlHandler  # type: ignore[attr-defined,unused-ignore]  # Windows
        self._set(self._handler, True)

    def release(self) -> None:
        """Remove the handler and let the console close: everything is saved."""
        self._set(self._handler, False)
        self._done.set()


def run_until_exit(
    loop: asyncio.AbstractEventLoop, program: Coroutine[Any, Any, int], window: MainWindow | None = None
) -> int:
    """Run `program` on `loop` and return its exit code, or 128 + n if signal n ended it.

    A signal closes the window like the user would: settings are saved, the run is stopped, files are closed.
    """
    task = loop.create_task(program)

    def end() -> None:
        if window is not None:
            window.close()
        task.cancel()

    signals = TerminationSignals()
    signals.received.connect(end)
    application = QCoreApplication.instance()
    if isinstance(application, QGuiApplication) and window is not None:
        application.commitDataRequest.connect(window.save_now)
        application.aboutToQuit.connect(window.close)
    signals.start()
    code = 0
    try:
        with suppress(asyncio.CancelledError):
            code = int(loop.run_until_complete(task))
    finally:
        signals.stop()
    return exit_code(signals.number) if signals.number else code
