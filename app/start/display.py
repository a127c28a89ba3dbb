"""Where the program draws: on the screen there is, or, for a picture, on none. Asked before Qt is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, QMessageLogContext, QtMsgType, qFormatLogMessage, qInstallMessageHandler

from app.start.cli import CommandLineOptions
from app.start.qt_libraries import missing_for_platform, platform_plugins, remedy
from resources.language import mark, tr

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


PLATFORM = "QT_QPA_PLATFORM"
_SCREENS = (PLATFORM, "WAYLAND_DISPLAY", "DISPLAY")
NO_SCREEN = mark(
    "there is no screen: neither DISPLAY nor WAYLAND_DISPLAY is set. Start it in a desktop session (over ssh with -X), "
    "or draw into a file with --screenshot FILE or --export FILE."
)


def choose_platform(options: CommandLineOptions) -> str:
    """Set what Qt reads of the environment; why no window can be shown, or nothing.

    A picture on Linux needs no screen and uses none, so that it does not depend on one. Qt itself would end the
    process without a word of what to do.
    """
    if options.scale is not None and options.pictures is None:
        os.environ["QT_SCALE_FACTOR"] = f"{options.scale:g}"
    if not sys.platform.startswith("linux"):
        return ""
    if options.writes_files or options.pictures is not None:
        os.environ.setdefault(PLATFORM, "offscreen")
    return "" if any(os.environ.get(name) for name in _SCREENS) else NO_SCREEN


def unusable_platform_reason() -> str:
    """Return which system libraries the platform plugin lacks and how to install them; empty where none is missing.

    Qt itself aborts the process when its plugin cannot be loaded.
    """
    if not sys.platform.startswith("linux"):
        return ""
    folder = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath))
    missing = missing_for_platform(platform_plugins(folder, os.environ))
    if not missing:
        return ""
    return tr("Qt needs system libraries that are missing: {libraries}. To install them: {command}").format(
        libraries=", ".join(sorted(missing)), command=remedy(missing)
    )
