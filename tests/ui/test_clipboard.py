"""Words on the clipboard: as HTML and plain, and the process ends well with them there."""

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


def test_who_pastes_decides(qtbot: QtBot) -> None:
    copy_text_and_html("words", "<b>words</b>")
    held = QGuiApplication.clipboard().mimeData()
    assert (held.text(), held.html()) == ("words", "<b>words</b>")


@pytest.mark.parametrize("platform", ["offscreen", "minimal"])
def test_the_process_ends_well_with_words_there(platform: str) -> None:
    """Qt had let go of them after Python had ended: the process ended with a fault, after its work was done."""
    command = [sys.executable, "-c", _PROGRAM, platform]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "words\n"), ended.stderr
