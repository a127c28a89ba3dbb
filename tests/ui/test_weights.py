"""Weight formats: chosen in a dialog, saved, shown everywhere and measured by a button."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QRadioButton
from pytestqt.qtbot import QtBot

from decodescope.app.control.dialogs import run_scripts
from decodescope.app.control.messages import DISK_OFFER
from decodescope.app.control.model_list import WEIGHTS
from decodescope.app.control.model_loading import format_lines
from decodescope.app.panels.weights_dialog import WeightsDialog
from decodescope.app.start.cli import parse
from decodescope.app.state.worker_messages import ALL_IN_MEMORY, AS_FITS
from decodescope.app.storage.settings import WEIGHT_FORMATS
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.window.main_window import MainWindow
from decodescope.core import catalog
from tests.ui.layout import faults, settle
from tests.ui.windows import WAIT_MS, find, open_core_window


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    """Over the real core, with the storyteller."""
    return open_core_window(qtbot, config_dir)


def test_int8_weights_are_selected_and_in_script(qtbot: QtBot, window: MainWindow, config_dir: Path) -> None:
    parts, picker = window.parts, window.parts.toolbar.model
    picker.commandChosen.emit(WEIGHTS)
    dialog = find(window, WeightsDialog, "weightsDialog")
    settle(dialog)
    assert not faults(dialog)
    assert "5.7 MiB" in find(dialog, QRadioButton, "weights.int8").accessibleDescription()
    measure = find(dialog, QPushButton, "measureWeights")
    assert not measure.isEnabled()
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS) as ready:
        dialog.choose("int8")
    assert ready.args[0].dtype == "int8"
    assert "int8" in parts.status.device.toolTip()
    assert SettingsStore(config_dir).load().models.weights == {"storyteller": "int8"}
    with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS):
        measure.click()
    scored = window.session.run
    assert scored is not None
    assert scored.started is not None
    assert scored.started.dtype == "int8"
    assert len(scored.comparisons) == len(scored.tokens) > 5
    parts.settings_controller.update_values({"max_new_tokens": 3})
    with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS):
        parts.runs.run()
    assert window.session.run is not None
    scripts, reason = run_scripts(window.session.run)
    assert list(scripts) == ["core"]
    assert 'decodescope.load("storyteller", weights="int8")' in scripts["core"]
    assert "int8" in reason


@pytest.mark.slow
def test_memory_limit_below_weights_is_selected_and_in_script(
    qtbot: QtBot, window: MainWindow, config_dir: Path
) -> None:
    """From the dialog to the settings, the line that says how quick it is, and the code; too little says so and offers
    what goes."""
    parts = window.parts
    dialog = parts.weights.open_dialog()
    assert dialog is not None
    settle(dialog)
    assert not faults(dialog)
    with qtbot.waitSignal(parts.memory_fit.throughputEstimated, timeout=6 * WAIT_MS, check_params_cb=bool):
        dialog.memory.choose(14)
    settle(dialog)
    assert not faults(dialog)
    assert dialog.memory.speed_label.text().startswith("4 of 12 layers stay in memory")
    assert "layers stay in memory" in parts.setup.memory_label.text()
    assert SettingsStore(config_dir).load().models.memory == {"storyteller": 10}
    dialog.choose("int8")
    assert not dialog.memory.all_button.isEnabled()
    assert parts.loading.request().memory == ALL_IN_MEMORY
    dialog.choose("auto")
    with qtbot.waitSignal(window.session.failed, timeout=6 * WAIT_MS) as failed:
        parts.weights.set_memory_limit(1)
    assert failed.args[0].kind == "ModelTooLargeError"
    dialog.close()
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS):
        find(window, QPushButton, f"{DISK_OFFER}Action").click()
    parts.settings_controller.update_values({"max_new_tokens": 3})
    with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS):
        parts.runs.run()
    run = window.session.run
    assert run is not None
    assert run.request.load.memory == AS_FITS
    scripts, reason = run_scripts(run)
    assert "memory_limit='fit'" in scripts["core"].replace('"', "'")
    assert "disk" in reason


@pytest.mark.parametrize(
    ("text", "memory"), [("all", ALL_IN_MEMORY), ("fit", AS_FITS), ("6", 6144), ("1.5GB", 1536), ("800 mb", 800)]
)
def test_memory_option_is_parsed(text: str, memory: int) -> None:
    assert parse(["--memory", text]).memory == memory


@pytest.mark.parametrize("text", ["", "much", "-1", "0", "6TB", "1e9"])
def test_invalid_memory_option_is_rejected(text: str) -> None:
    with pytest.raises(SystemExit):
        parse(["--memory", text])


@pytest.mark.parametrize("is_on_card", [True, False])
def test_fp8_is_enabled_only_on_nvidia_gpu(is_on_card: bool) -> None:
    lines = {line.kind: line for line in format_lines(catalog.bundled()[0], is_on_card)}
    assert [kind for kind, line in lines.items() if line.reason] == ([] if is_on_card else ["fp8"])
    assert lines["fp8"].about.split(".")[0] == lines["int8"].about.split(".")[0] != ""


def test_command_line_and_catalog_have_same_weight_formats() -> None:
    assert WEIGHT_FORMATS == catalog.KINDS
    assert parse(["--weights", "int4"]).weights == "int4"
