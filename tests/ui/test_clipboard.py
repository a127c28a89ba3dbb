"""Text on the clipboard as HTML and plain text, and a clean exit of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from decodescope.app.widgets.clipboard import copy_text_and_html

_PROGRAM = """
import sys
from PySide6.QtGui import QGuiApplication
from decodescope.app.widgets.clipboard import copy_text_and_html
application = QGuiApplication(["it", "-platform", sys.argv[1]])
copy_text_and_html("words", "<b>words</b>")
print(QGuiApplication.clipboard().text())
"""


def test_copy_provides_plain_text_and_html(qtbot: QtBot) -> None:
    copy_text_and_html("words", "<b>words</b>")
    held = QGuiApplication.clipboard().mimeData()
    assert (held.text(), held.html()) == ("words", "<b>words</b>")


@pytest.mark.parametrize("platform", ["offscreen", "minimal"])
def test_process_with_clipboard_content_exits_cleanly(platform: str) -> None:
    """Regression test: Qt released the data after Python had shut down, and the process crashed at exit."""
    command = [sys.executable, "-c", _PROGRAM, platform]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "words\n"), ended.stderr
