"""Fixtures of the window's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from decodescope.app import build_window
from decodescope.app.theme import theme
from decodescope.app.window.main_window import MainWindow
from tests.fonts import FONTS, TestFont
from tests.ui.fake_engine import ScriptedEngine


@pytest.fixture(params=sorted(FONTS))
def font(request: pytest.FixtureRequest, qapp: QApplication, needs_font: Callable[[TestFont], None]) -> Iterator[str]:
    """The interface font of everything that is opened in the test: the wide one, then the narrow one."""
    wanted = FONTS[request.param]
    needs_font(wanted)
    before = QApplication.font()
    own = QFont(before)
    own.setFamilies([wanted.family, FONTS["wide"].family])
    QApplication.setFont(own)
    theme.reset_font_family()
    yield str(request.param)
    QApplication.setFont(before)
    theme.reset_font_family()


@pytest.fixture(scope="module")
def shared(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    """One window for most tests of a file, because creating one takes longer than a test."""
    window = build_window(tmp_path_factory.mktemp("shared"), ScriptedEngine())
    window.resize(1280, 800)
    window.show()
    yield window
    window.close()
    window.deleteLater()
