"""Long sessions of the window: opening, running and closing leaves no thread, descriptor, file or widget behind."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.session.engine_router import EngineRouter
from tests.ui import soak_session
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS

ROOT = Path(__file__).resolve().parents[2]
MINUTES = float(os.environ.get("DECODESCOPE_SOAK_MINUTES", "60"))
"""Length of the long session."""
DIALOGS = ("open_settings", "open_shortcuts", "open_glossary", "get_model", "copy_code")


def count_resources() -> dict[str, int]:
    """Resources that a process could run out of."""
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


def use_window_once(qtbot: QtBot, folder: Path, number: int, engine: ScriptedEngine | EngineRouter) -> None:
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
def test_closed_windows_leave_no_resources(qtbot: QtBot, config_dir: Path) -> None:
    for number in range(3):  # what is made once stays
        use_window_once(qtbot, config_dir, number, ScriptedEngine())
    before = count_resources()
    for number in range(6):
        use_window_once(qtbot, config_dir, number, ScriptedEngine())
    assert growth(before, count_resources()) == {}


@pytest.mark.slow
def test_switching_models_leaks_no_resources(qtbot: QtBot, config_dir: Path) -> None:
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
    before = count_resources()
    runs(16)
    assert growth(before, count_resources()) == {}
    window.close()
    window.deleteLater()


def flat(count: int) -> list[dict[str, int]]:
    """Samples of a session without a leak: memory and threads go up and down."""
    return [
        {"memory": 900_000_000 + 5_000_000 * (n % 3), "threads": 9 + (n % 5 == 0), "descriptors": 40}
        for n in range(count)
    ]


@pytest.mark.parametrize(("name", "each_round"), [("descriptors", 0.2), ("threads", 0.2), ("memory", 4_000_000)])
def test_soak_growth_check_detects_slow_leak(name: str, each_round: float) -> None:
    samples = flat(30)
    assert soak_session.growth(samples) == {}
    leaking = [{**sample, name: int(sample[name] + n * each_round)} for n, sample in enumerate(samples)]
    assert list(soak_session.growth(leaking)) == [name]


@pytest.mark.soak
def test_long_session_has_constant_resource_use(tmp_path: Path) -> None:
    """Every feature in turn in one window, for `DECODESCOPE_SOAK_MINUTES` (default 60)."""
    homes = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HF_HOME")
    variables = {**os.environ, **{name: str(tmp_path / "home" / name.lower()) for name in homes}}
    command = [sys.executable, "-m", "tests.ui.soak_session", str(tmp_path / "session"), str(MINUTES)]
    answer = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr
    *rounds, last = map(json.loads, answer.stdout.splitlines())
    samples = [line["sample"] for line in rounds]
    print(f"\n{len(samples)} rounds in {MINUTES:g} minutes; after the first, in the middle, after the last:")
    for name in samples[0]:
        print(f"  {name}: {samples[0][name]:,}  {samples[len(samples) // 2][name]:,}  {samples[-1][name]:,}")
    assert soak_session.growth(samples) == {}, last
