"""Runs the program until its window is closed, the session of the desktop ends, or a signal asks for the end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication

from app.start.termination import TerminationSignals, exit_code
from app.window.main_window import MainWindow


def run_until_exit(
    loop: asyncio.AbstractEventLoop, program: Coroutine[Any, Any, int], window: MainWindow | None = None
) -> int:
    """Run `program` on `loop`; gives back its exit code, or 128 + n when signal n has ended it.

    A signal closes the window as its user would: what is set is saved, the run is stopped, files are closed.
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
