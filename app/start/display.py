"""Choose the Qt platform before Qt starts: the available screen, or off-screen rendering for pictures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, QMessageLogContext, QtMsgType, qFormatLogMessage, qInstallMessageHandler

from decodescope.app.start.cli import CommandLineOptions
from decodescope.app.start.qt_libraries import missing_for_platform, platform_plugins, remedy
from decodescope.resources.language import join_names, mark, tr

MessageHandler = Callable[[QtMsgType, QMessageLogContext, str], None]
IGNORED_PREFIX = "This plugin does not support "
"""Prefix of the warnings that a platform without a window manager prints whenever a window changes its size limits."""


class WindowManagerFilter:
    """Pass on every message except those of a platform that has no window manager."""

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
    """Suppress window-manager warnings while Qt draws off-screen; has no effect on a real screen."""
    if os.environ.get("QT_QPA_PLATFORM", "").split(":")[0] not in ("offscreen", "minimal"):
        return
    previous = qInstallMessageHandler(None)
    handler = previous if isinstance(previous, WindowManagerFilter) else WindowManagerFilter(previous)
    qInstallMessageHandler(handler)


PLATFORM = "QT_QPA_PLATFORM"
LEVEL_VARIABLE = "DECODESCOPE_NATIVE_LEVEL"
_SCREENS = (PLATFORM, "WAYLAND_DISPLAY", "DISPLAY")
NO_SCREEN = mark(
    "there is no screen: neither DISPLAY nor WAYLAND_DISPLAY is set. Start the program in a desktop "
    "session (over ssh with -X), or write a picture with --screenshot FILE or --export FILE."
)


def choose_platform(options: CommandLineOptions) -> str:
    """Set the environment variables that Qt reads, and return why no window can be shown (empty if one can).

    Pictures on Linux are always drawn off-screen, so they do not depend on a screen. Without a screen, Qt itself would
    abort the process without explaining the remedy.
    """
    if options.scale is not None and options.pictures is None:
        os.environ["QT_SCALE_FACTOR"] = f"{options.scale:g}"
    if not sys.platform.startswith("linux"):
        return ""
    if options.writes_files or options.pictures is not None:
        os.environ.setdefault(PLATFORM, "offscreen")
    return "" if any(os.environ.get(name) for name in _SCREENS) else NO_SCREEN


def unusable_native_level_reason() -> str:
    """Return why the native library that an environment variable chooses cannot be used; empty if it can."""
    if LEVEL_VARIABLE not in os.environ:
        return ""
    from decodescope import core

    try:
        core.kernel_status()
    except core.errors.ParameterError as error:
        return str(error)
    return ""


def unusable_platform_reason() -> str:
    """Return which system libraries the platform plugin lacks and how to install them; empty if none is missing.

    Qt itself aborts the process when its plugin cannot be loaded.
    """
    if not sys.platform.startswith("linux"):
        return ""
    folder = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath))
    missing = missing_for_platform(platform_plugins(folder, os.environ))
    if not missing:
        return ""
    return tr("Qt needs system libraries that are missing: {libraries}. To install them: {command}").format(
        libraries=join_names(sorted(missing)), command=remedy(missing)
    )
