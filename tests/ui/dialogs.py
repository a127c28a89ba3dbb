"""Open the program's dialogs as a user does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtWidgets import QApplication, QDialog
from pytestqt.qtbot import QtBot

from decodescope.app.window.main_window import MainWindow

DIALOGS = (
    "settings",
    "export",
    "keys",
    "used",
    "code",
    "download",
    "engine",
    "documentation",
    "likelihood",
)


@contextmanager
def dialog_of(qtbot: QtBot, window: MainWindow, kind: str) -> Iterator[QDialog]:
    """Show one of DIALOGS with keyboard focus over a window that has a run; close it afterwards."""
    parts = window.parts
    {
        "settings": parts.dialogs.open_settings,
        "export": parts.export.open_dialog,
        "keys": parts.dialogs.open_shortcuts,
        "used": parts.dialogs.open_used_settings,
        "code": parts.code.show_code,
        "download": parts.model_download.open,
        "engine": parts.model_download.connect_engine,
        "documentation": parts.dialogs.open_documentation,
        "likelihood": parts.likelihood.open,
    }[kind]()
    (dialog,) = (part for part in window.findChildren(QDialog) if part.isVisible())
    with qtbot.waitActive(dialog):
        dialog.activateWindow()
    qtbot.waitUntil(lambda: dialog.isAncestorOf(QApplication.focusWidget()))
    yield dialog
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
