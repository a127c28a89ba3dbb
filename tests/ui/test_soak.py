"""Long sessions of the window: opening, running and closing leaves no thread, descriptor, file or widget behind."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import build_window
from app.session.engine_router import EngineRouter
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS

DIALOGS = ("open_settings", "open_shortcuts", "open_glossary", "get_model", "copy_code")


def counted() -> dict[str, int]:
    """What a process could run out of."""
    for _ in range(3):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QApplication.processEvents()
        gc.collect()
    process = psutil.Process()
    return {
        "threads": threading.active_count(),
        "native threads": process.num_threads(),
        "descriptors": process.num_handles() if sys.platform == "win32" else process.num_fds(),
        "widgets": len(QApplication.topLevelWidgets()),
        "temporary files": len(os.listdir(tempfile.gettempdir())),
    }


def session_of_a_reader(qtbot: QtBot, folder: Path, number: int, engine: ScriptedEngine | EngineRouter) -> None:
    """A window with runs by several strategies and caches, a chat turn, dialogs; then it is closed."""
    window = build_window(folder, engine, assembled=False)
    window.assemble()
    window.show()
    parts = window.parts
    for strategy, cache in (("sampling", "dynamic"), ("beam_search", "offloaded"), ("greedy", "quantized")):
        parts.settings_controller.choose(strategy=strategy, cache=cache)
        parts.settings_controller.set_values({"max_new_tokens": 4})
        parts.setup.prompt.set_prompt(f"Once upon a time number {number}", is_chat=False)
        with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
            parts.runs.run()
    for name in DIALOGS:
        parts.actions.do(name)
    parts.history_panel.toggle()
    for view in ("tree", "memory", "compare"):
        parts.centre.show_view(view)
    window.close()
    window.deleteLater()


def growth(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in before if after[name] > before[name]}


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs write into the system's."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.mark.slow
def test_windows_leave_nothing_behind(qtbot: QtBot, config_dir: Path) -> None:
    for number in range(3):  # what is made once stays
        session_of_a_reader(qtbot, config_dir, number, ScriptedEngine())
    before = counted()
    for number in range(6):
        session_of_a_reader(qtbot, config_dir, number, ScriptedEngine())
    assert growth(before, counted()) == {}


@pytest.mark.slow
def test_models_switched_in_turn_leave_nothing_behind(qtbot: QtBot, config_dir: Path) -> None:
    window = build_window(config_dir, assembled=False)
    window.assemble()
    window.show()
    parts = window.parts

    def runs(count: int) -> None:
        for number in range(count):
            model = ("storyteller", "storyteller-draft")[number % 2]
            parts.settings_controller.choose(
                model=model, strategy=("greedy", "sampling")[number // 2 % 2], cache="offloaded"
            )
            parts.settings_controller.set_values({"max_new_tokens": 3})
            parts.setup.prompt.set_prompt(f"{number} times upon a time")
            with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS):  # torch may be read first
                parts.runs.run()

    runs(6)
    before = counted()
    runs(16)
    assert growth(before, counted()) == {}
    window.close()
    window.deleteLater()
