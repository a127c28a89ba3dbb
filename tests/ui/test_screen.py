"""Only Qt owns screens."""

from pathlib import Path

import shiboken6
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QVBoxLayout
from pytestqt.qtbot import QtBot

from decodescope import app
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.screen import available_rect, screen_of


def test_screen_of_widget_keeps_screen_unparented(qtbot: QtBot) -> None:
    dialog = BaseDialog()
    QVBoxLayout(dialog).addWidget(QLabel("Hello."))
    qtbot.addWidget(dialog)
    dialog.show()
    assert screen_of(dialog) is QGuiApplication.primaryScreen()
    assert available_rect(dialog) == QGuiApplication.primaryScreen().availableGeometry()
    assert "parent" not in shiboken6.dump(QGuiApplication.primaryScreen())


def test_source_does_not_call_screen_on_widgets() -> None:
    files = Path(app.__file__).parent.rglob("*.py")
    assert [path.name for path in files if ".screen()" in path.read_text("utf-8") and path.name != "screen.py"] == []
