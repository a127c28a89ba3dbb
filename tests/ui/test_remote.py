"""Models on other machines in the window, with an engine on this one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLabel, QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.control.model_list import ENGINE_ADDRESS
from decodescope.app.panels.engine_dialog import EngineDialog
from decodescope.app.session.remote_engine import RemoteEngine
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.theme import theme_for
from decodescope.app.views import VIEWS
from decodescope.app.window.main_window import MainWindow
from decodescope.core import remote
from tests import fake_remote_engine
from tests.fake_remote_engine import FakeEngine
from tests.ui import layout
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, find, open_window, run


@pytest.fixture
def machine() -> Iterator[FakeEngine]:
    with fake_remote_engine.running(models=("tale-7b", "tale-70b")) as running:
        yield running


def connected(qtbot: QtBot, config_dir: Path, machine: FakeEngine) -> MainWindow:
    """A window whose chosen model is on that machine, and has answered."""
    store = SettingsStore(config_dir)
    store.settings.choices.model = machine.name()
    store.settings.models.engines = [machine.name()]
    store.save()
    window = open_window(qtbot, config_dir, RemoteEngine())
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=WAIT_MS)
    return window


def written(machine: FakeEngine) -> str:
    return "".join(piece for piece, _share, _likely in machine.story)


def test_remote_run_shows_reported_values(qtbot: QtBot, config_dir: Path, machine: FakeEngine) -> None:
    window = connected(qtbot, config_dir, machine)
    parts = window.parts
    parts.setup.create_all_rows()
    assert run(qtbot, window).kind == "completed"
    assert window.session.run.text == written(machine)
    window.session.select_token(len(window.session.run.tokens) - 1)
    page = parts.inspector.page
    assert "does not report its probability" in page.sentence.text()
    assert [row.label for row in page.bars.rows] == [".", ",", "␣who"]
    assert any("vLLM applies its settings" in label.text() for label in page.funnel.findChildren(QLabel))
    assert not find(window, QPushButton, "layersButton").isEnabled()
    assert parts.status.number_labels["cache"].text() == ""
    assert "vLLM" in parts.status.device.text()
    parts.dialogs.open_used_settings()
    used = [label.text() for label in find(window, QDialog, "usedSettingsDialog").findChildren(QLabel)]
    assert "4 tokens" in used
    assert f"vLLM, {machine.address.removeprefix('http://')}" in used
    rows = parts.setup.parameters.rows
    assert rows["no_repeat_ngram_size"].unavailable == "vLLM does not have this setting."
    assert rows["top_k"].unavailable == ""
    assert "no_repeat_ngram_size" not in parts.setup.parameters.values()
    for view in VIEWS:
        parts.centre.show_view(view.name)
        layout.settle(window)


def test_text_is_kept_when_remote_engine_disconnects(qtbot: QtBot, config_dir: Path, machine: FakeEngine) -> None:
    machine.dies_after = 3
    window = connected(qtbot, config_dir, machine)
    outcome = run(qtbot, window)
    assert (outcome.kind, outcome.error.kind) == ("failed", "EngineCutError")
    assert window.session.run.text == " there was a"


def test_text_without_probabilities_is_shown_uncolored(qtbot: QtBot, config_dir: Path) -> None:
    with fake_remote_engine.running("transformers") as machine:
        window = connected(qtbot, config_dir, machine)
        assert run(qtbot, window).kind == "completed"
        assert window.parts.inspector.page.facts.text() == "probability not reported"
        assert window.grab().toImage().isNull() is False


def search_engines(qtbot: QtBot, window: MainWindow, address: str) -> EngineDialog:
    """Open the engine dialog from the picker and search the address."""
    picker = window.parts.toolbar.model
    picker.commandChosen.emit(ENGINE_ADDRESS)
    dialog = find(window, EngineDialog, "engineDialog")
    dialog.address.setFocus()
    dialog.address.setText(address)
    qtbot.keyClick(dialog.address, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: dialog.status.property("role") in ("finished", "danger"), timeout=WAIT_MS)
    return dialog


def test_engine_dialog_finds_models_and_adds_selected_one(qtbot: QtBot, config_dir: Path, machine: FakeEngine) -> None:
    machine.key = "sk-secret"
    window = open_window(qtbot, config_dir, ScriptedEngine())
    dialog = search_engines(qtbot, window, f"{machine.address}/v1")
    assert "401" in dialog.status.text()
    assert not dialog.connect_button.isEnabled()
    dialog.key.setFocus()
    dialog.key.setText("sk-secret")
    qtbot.keyClick(dialog.key, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: dialog.models.count() == 2, timeout=WAIT_MS)
    assert "vLLM responds and offers 2 models." in dialog.status.text()
    dialog.set_theme(theme_for("dark"))
    layout.settle(dialog)
    assert layout.faults(dialog) == []
    dialog.models.setCurrentRow(1)
    with qtbot.waitSignal(dialog.destroyed):
        dialog.connect_button.click()
    parts = window.parts
    assert parts.chosen.model.name == machine.name("tale-70b")
    assert parts.settings.models.engines == [machine.name("tale-70b")]
    parts.settings_saver.save_settings()
    assert "sk-secret" not in SettingsStore(config_dir).path.read_text(encoding="utf-8")
    remote.forget_key(remote.parse(machine.address))


def test_keyring_failure_is_reported_and_engine_connects(
    qtbot: QtBot, config_dir: Path, machine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is connected all the same; a keyring that takes the key closes the dialog."""
    requested: list[bool] = []

    def keep(_address: remote.Address, _key: str, lasting: bool = False) -> bool:
        requested.append(lasting)
        return not lasting or len(requested) > 3

    monkeypatch.setattr(remote, "keep_key", keep)
    monkeypatch.setattr(remote, "has_keyring", lambda: True)
    window = open_window(qtbot, config_dir, ScriptedEngine())
    dialog = search_engines(qtbot, window, f"{machine.address}/v1")
    dialog.key.setText("sk-secret")
    dialog.keep_key_box.setChecked(True)
    dialog.models.setCurrentRow(0)
    dialog.connect_button.click()
    qtbot.waitUntil(lambda: "the key could not be saved" in dialog.status.text(), timeout=WAIT_MS)
    assert requested == [False, True]
    assert window.parts.settings.models.engines == [machine.name("tale-7b")]
    with qtbot.waitSignal(dialog.destroyed, timeout=WAIT_MS):
        dialog.connect_button.click()
    assert requested == [False, True, False, True]


def test_plain_http_address_requires_permission_before_connecting(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    dialog = search_engines(qtbot, window, "http://10.1.2.3:8000/v1")
    assert "is another machine" in dialog.status.text()
    assert not dialog.allow_plain_box.isHidden()
    dialog.address.setText("http://localhost:8000/v1")
    assert dialog.allow_plain_box.isHidden()
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
