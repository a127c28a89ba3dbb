"""Fixtures of the window's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.window.main_window import MainWindow
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import open_window


@pytest.fixture
def engine() -> ScriptedEngine:
    """The engine of `window`."""
    return ScriptedEngine()


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> MainWindow:
    """A window for one test, with its own settings."""
    return open_window(qtbot, config_dir, engine)


@pytest.fixture(scope="module")
def shared(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    """One window for most tests of a file, because creating one takes longer than a test."""
    window = build_window(tmp_path_factory.mktemp("shared"), ScriptedEngine())
    window.resize(1280, 800)
    window.show()
    yield window
    window.close()
    window.deleteLater()
