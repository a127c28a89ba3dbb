"""Exporting the selected model as a GGUF file from the menu: scripted, and with a bundled model."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.control.model_export import FORMATS, export_stem
from decodescope.app.session.queries.model_export import ModelExportQuery
from decodescope.app.widgets.file_dialogs import remember_folder
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


@pytest.mark.parametrize(
    ("model", "stem"),
    [
        ("/models/SmolLM2.Q4_1.gguf", "SmolLM2"), ("Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B"), ("storyteller", "storyteller"),
        ("owner/name", "name"), ("x-bf16.gguf", "x"), ("Q8_0.gguf", "Q8_0"), ("", "model"),
    ],
)  # fmt: skip
def test_proposed_name_does_not_say_the_format_of_the_model_before(model: str, stem: str) -> None:
    assert export_stem(model) == stem


def test_export_dialog_starts_in_the_folder_of_the_last_export(
    qtbot: QtBot, config_dir: Path, tmp_path: Path
) -> None:  # fmt: skip
    window = open_window(qtbot, config_dir, ScriptedEngine())
    exports, others = tmp_path / "exports", tmp_path / "adapters"
    exports.mkdir()
    others.mkdir()
    export(qtbot, window, exports / "m.gguf", 0)
    remember_folder(str(others / "adapter.gguf"))
    window.parts.model_export.choose_file()
    (dialog,) = window.findChildren(QFileDialog)
    assert Path(dialog.directory().absolutePath()) == exports
    dialog.close()


def test_export_with_an_adapter_says_that_it_is_merged(
    qtbot: QtBot, config_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    choice = core.AdapterChoice(str(tmp_path / "pirate"), 1.0)
    monkeypatch.setattr(type(window.parts.model_export._adapters), "choices", (choice,))
    window.parts.model_export.choose_file()
    (dialog,) = window.findChildren(QFileDialog)
    assert "pirate" in dialog.windowTitle()
    dialog.close()
    qtbot.waitUntil(lambda: not window.findChildren(QFileDialog), timeout=WAIT_MS)
    export(qtbot, window, tmp_path / "m.gguf", 0)
    assert engine.exports[0].adapters == (choice,)


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
