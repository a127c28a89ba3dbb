"""Messages that Qt itself writes to the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from PySide6.QtCore import QMessageLogContext, QtMsgType, qFormatLogMessage, qInstallMessageHandler

MessageHandler = Callable[[QtMsgType, QMessageLogContext, str], None]
IGNORED_PREFIX = "This plugin does not support "
"""How warnings begin that a platform without a window manager writes whenever a window changes its size limits."""


class WindowManagerFilter:
    """Pass on every message but those of a platform that has no window manager."""

    def __init__(self, next_handler: MessageHandler | None) -> None:
        self.next_handler = next_handler

    def __call__(self, kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if message.startswith(IGNORED_PREFIX):
            return
        if self.next_handler is not None:
            self.next_handler(kind, context, message)
        else:
            print(qFormatLogMessage(kind, context, message), file=sys.stderr)


def ignore_window_manager_warnings() -> None:
    """Keep the terminal clean while Qt draws without a screen; on a real screen nothing changes."""
    if os.environ.get("QT_QPA_PLATFORM", "").split(":")[0] not in ("offscreen", "minimal"):
        return
    previous = qInstallMessageHandler(None)
    handler = previous if isinstance(previous, WindowManagerFilter) else WindowManagerFilter(previous)
    qInstallMessageHandler(handler)
