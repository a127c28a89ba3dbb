"""What a model's weights are kept as: asked in a dialog, remembered, told in every place, measured by a button."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QRadioButton
from pytestqt.qtbot import QtBot

from app import build_window
from app.control.code import scripts_of
from app.control.model_list import WEIGHTS_ITEM
from app.panels.weights_dialog import WeightsDialog
from app.start.cli import parse
from app.storage.settings import WEIGHTS
from app.storage.settings_file import SettingsStore
from app.window.main_window import MainWindow
from core import catalog
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, find


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    """Over the real core, with the storyteller."""
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS):
        window.show()
    window.resize(1280, 800)
    return window


def test_eight_bits_from_the_picker_to_the_code(qtbot: QtBot, window: MainWindow, config_dir: Path) -> None:
    parts, picker = window.parts, window.parts.toolbar.model
    picker.activated.emit(picker.findData(WEIGHTS_ITEM))
    dialog = find(window, WeightsDialog, "weightsDialog")
    settle(dialog)
    assert not faults(dialog)
    assert "5.7 MiB" in find(dialog, QRadioButton, "weights.int8").accessibleDescription()
    measure = find(dialog, QPushButton, "measureWeights")
    assert not measure.isEnabled()
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS) as ready:
        dialog.choose("int8")
    assert ready.args[0].dtype == "int8"
    assert "int8" in parts.status.device.text()
    assert SettingsStore(config_dir).load().models.weights == {"storyteller": "int8"}
    with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS):
        measure.click()
    scored = window.session.run
    assert scored is not None
    assert scored.started is not None
    assert scored.started.dtype == "int8"
    assert len(scored.compared) == len(scored.tokens) > 5
    parts.controller.set_more_values({"max_new_tokens": 3})
    with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS):
        parts.runs.run()
    assert window.session.run is not None
    scripts, reason = scripts_of(window.session.run)
    assert list(scripts) == ["core"]
    assert 'core.load("storyteller", weights="int8")' in scripts["core"]
    assert "int8" in reason


def test_the_command_line_and_the_settings_know_the_same_kinds() -> None:
    assert WEIGHTS == catalog.KINDS
    assert parse(["--weights", "int4"]).weights == "int4"
