"""Saving and loading a prefix in the window: over a script, and with the bundled models."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QToolButton
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.session.queries.prefix_file import PrefixQuery
from decodescope.app.views.memory.view import MemoryView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.errors import CacheError
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, find, open_window, run

LONG_MS = 6 * WAIT_MS


def view(window: MainWindow) -> MemoryView:
    window.parts.centre.show_view("memory")
    return find(window, MemoryView, "memoryView")


def send_prefix_request(qtbot: QtBot, window: MainWindow, signal: str, path: Path) -> None:
    with qtbot.waitSignal(
        window.session.answered, timeout=LONG_MS, check_params_cb=lambda a: isinstance(a.query, PrefixQuery)
    ):
        getattr(view(window).signals, signal).emit(str(path))


def test_save_prefix_without_run_shows_error(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    view(window).signals.prefixSaveRequested.emit("x.safetensors")
    assert "There is no run yet" in window.parts.centre.error_banner.accessibleDescription()


def test_prefix_menu_opens_file_dialogs(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    run(qtbot, window)
    menu = find(window, QToolButton, "prefixButton").menu()
    for action, expected in zip(menu.actions(), (True, False), strict=True):
        action.trigger()
        (dialog,) = window.findChildren(QFileDialog)
        with qtbot.waitSignal(
            window.session.answered, timeout=WAIT_MS, check_params_cb=lambda a: isinstance(a.query, PrefixQuery)
        ):
            dialog.fileSelected.emit(str(tmp_path / "p.safetensors"))
        dialog.close()
        qtbot.waitUntil(lambda: not window.findChildren(QFileDialog), timeout=WAIT_MS)
        assert (engine.prefixes[-1].ids is not None) == expected
    assert engine.prefixes[0].ids[-1] == window.session.run.tokens[-1].id
    assert "12 tokens" in window.parts.centre.notice_banner.accessibleDescription()
    window.parts.centre.notice_banner.button("usePrefix").click()
    assert window.parts.setup.prompt.editor.toPlainText() == "Once upon a time"


def test_prefix_error_shows_remedy(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    engine.error = CacheError("p is not a saved prefix.", "Choose a prefix saved by this program.")
    send_prefix_request(qtbot, window, "prefixLoadRequested", tmp_path / "p")
    banner = window.parts.centre.error_banner
    assert banner.isVisible()
    assert banner.title.text() == "This prefix cannot be used"
    assert "Choose a prefix saved" in banner.remedy.text()
    assert banner.button("retry") is None


def real(qtbot: QtBot, config_dir: Path, model: str = "storyteller") -> MainWindow:
    window = build_window(config_dir)
    qtbot.addWidget(window)
    window.parts.settings_controller.choose(model=model, strategy="greedy")
    with qtbot.waitSignal(window.session.modelReady, timeout=LONG_MS):
        window.show()
    window.parts.settings_controller.set_values({"max_new_tokens": 8})
    return window


@pytest.fixture
def saved(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> Path:
    """A prefix that an earlier start of the program has saved."""
    window, path = real(qtbot, config_dir), tmp_path / "story.safetensors"
    window.parts.setup.prompt.set_prompt("Once upon a time, there was a little fox who")
    run(qtbot, window)
    send_prefix_request(qtbot, window, "prefixSaveRequested", path)
    assert not window.parts.centre.error_banner.isVisible()
    assert "story.safetensors" in window.parts.centre.notice_banner.accessibleDescription()
    window.close()
    return path


@pytest.mark.slow
def test_saved_prefix_is_reused_in_later_session(qtbot: QtBot, config_dir: Path, saved: Path) -> None:
    window = real(qtbot, config_dir)
    send_prefix_request(qtbot, window, "prefixLoadRequested", saved)
    window.parts.centre.notice_banner.button("usePrefix").click()
    window.parts.setup.prompt.set_prompt(window.parts.setup.prompt.editor.toPlainText() + " Then the fox")
    run(qtbot, window)
    reused = window.session.run.prefilled.reused
    assert reused > 12
    assert f"{reused} tokens reused from the cache" in view(window).charts.reuse.text()
    assert view(window).charts.reuse.isVisible()
    window.parts.setup.prompt.set_prompt("A bear")
    run(qtbot, window)
    assert view(window).charts.reuse.text().startswith("1 token reused ")  # the one every text begins with
    window.close()


def test_prefix_of_other_model_or_damaged_file_is_rejected(qtbot: QtBot, config_dir: Path, saved: Path) -> None:
    window = real(qtbot, config_dir, "storyteller-draft")
    send_prefix_request(qtbot, window, "prefixLoadRequested", saved)
    banner = window.parts.centre.error_banner
    assert "was made by storyteller" in banner.cause.text()
    assert banner.remedy.text() == "Load the model it was made with."
    saved.write_bytes(saved.read_bytes()[:200])
    send_prefix_request(qtbot, window, "prefixLoadRequested", saved)
    assert "could not be read" in banner.cause.text()
    assert "saved by this program" in banner.remedy.text()
    window.close()
