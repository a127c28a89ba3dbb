"""Exporting the selected model as a GGUF file from the menu: scripted, and with a bundled model."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.control.model_export import FORMATS
from decodescope.app.session.queries.model_export import ModelExportQuery
from decodescope.app.window.main_window import MainWindow
from decodescope.core.errors import UnpackableError
from decodescope.core.models.gguf.export import EXPORT_FORMATS
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, open_window, run

LONG_MS = 6 * WAIT_MS


def export(qtbot: QtBot, window: MainWindow, path: Path, choice: int, timeout: int = WAIT_MS) -> None:
    """Choose the format at `choice` in the dialog, and the file."""
    window.parts.model_export.choose_file()
    (dialog,) = window.findChildren(QFileDialog)
    dialog.selectNameFilter(dialog.nameFilters()[choice])
    with qtbot.waitSignal(
        window.session.answered, timeout=timeout, check_params_cb=lambda a: isinstance(a.query, ModelExportQuery)
    ):
        dialog.fileSelected.emit(str(path))
    dialog.close()
    qtbot.waitUntil(lambda: not window.findChildren(QFileDialog), timeout=WAIT_MS)


def test_every_format_is_offered() -> None:
    assert sorted(name for name, _, _ in FORMATS) == sorted(EXPORT_FORMATS)


@pytest.mark.parametrize("choice", range(len(FORMATS)))
def test_the_chosen_format_is_written(qtbot: QtBot, config_dir: Path, tmp_path: Path, choice: int) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    export(qtbot, window, tmp_path / "m.gguf", choice)
    (request,) = engine.exports
    assert (request.path, request.file_format) == (str(tmp_path / "m.gguf"), FORMATS[choice][0])
    assert "m.gguf" in window.parts.centre.notice_banner.accessibleDescription()


def test_failed_export_shows_error(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    run(qtbot, window)
    engine.error = UnpackableError("It has no GGUF architecture.", "Use llama.cpp's own converter.")
    export(qtbot, window, tmp_path / "m.gguf", 0)
    banner = window.parts.centre.error_banner
    assert banner.isVisible()
    assert banner.title.text() == "The model was not exported"
    assert "converter" in banner.remedy.text()
    assert not window.parts.centre.notice_banner.isVisible()
    assert window.session.run is not None, "the run is still shown"


def test_exported_bundled_model_can_be_loaded(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = build_window(config_dir=config_dir)
    qtbot.addWidget(window)
    window.show()
    path = tmp_path / "s.gguf"
    export(qtbot, window, path, 0, LONG_MS)
    loaded = core.load(path)
    assert loaded.weights == "Q8_0"
    assert loaded.name == "s"
    export(qtbot, window, tmp_path / "missing" / "s.gguf", 0, LONG_MS)
    assert "cannot be written" in window.parts.centre.error_banner.accessibleDescription()
