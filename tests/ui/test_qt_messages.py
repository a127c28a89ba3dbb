"""Messages of Qt in the terminal of a program without a screen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHANGE_SIZE_LIMITS = """
import sys
from PySide6.QtCore import qWarning
from PySide6.QtGui import QGuiApplication, QWindow
from decodescope.app.start.display import ignore_window_manager_warnings
for _ in range(int(sys.argv[1])):
    ignore_window_manager_warnings()
application = QGuiApplication([])
window = QWindow()
window.show()
window.setMinimumWidth(300)
window.setMinimumWidth(400)
qWarning("Something else is wrong")
"""


def terminal(times: int) -> str:
    """Return what a program writes that changes the size limits of a window which is shown."""
    variables = os.environ | {"QT_QPA_PLATFORM": "offscreen"}
    command = [sys.executable, "-c", CHANGE_SIZE_LIMITS, str(times)]
    return subprocess.run(command, env=variables, capture_output=True, text=True, cwd=Path(__file__).parents[2]).stderr


@pytest.mark.parametrize("times", [1, 3])
def test_window_manager_warnings_are_filtered(times: int) -> None:
    """However often it is requested, other messages appear, and once."""
    assert "propagateSizeHints" in terminal(0)
    assert terminal(times).strip() == "Something else is wrong"


@pytest.mark.slow
def test_benchmark_output_has_no_qt_warnings() -> None:
    """The view of the tokens changes the size limits of its window, in the process of the benchmarks."""
    command = [sys.executable, "-m", "tests.benchmarks", "--quick", "token_view"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0
    assert "propagateSizeHints" not in done.stdout + done.stderr
