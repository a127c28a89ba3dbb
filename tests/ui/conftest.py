"""Fixtures of the window's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from decodescope.app import build_window
from decodescope.app.window.main_window import MainWindow
from tests.ui.fake_engine import ScriptedEngine


@pytest.fixture(scope="module")
def shared(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    """One window for most tests of a file, because creating one takes longer than a test."""
    window = build_window(tmp_path_factory.mktemp("shared"), ScriptedEngine())
    window.resize(1280, 800)
    window.show()
    yield window
    window.close()
    window.deleteLater()
