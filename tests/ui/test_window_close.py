"""Closing the window: it saves first, waits for the worker for a limited time, and always closes."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.session import worker
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.window import run_feed
from decodescope.core.events import Event
from tests.ui.fake_engine import ScriptedEngine, chosen
from tests.ui.windows import WAIT_MS, finish, open_window, whole


class HangingEngine(ScriptedEngine):
    """Emit one token, then block until released."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        yield chosen(0, " a")
        self.release.wait()


def test_window_closes_while_worker_hangs(qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_WAIT_MS", 50)
    engine = HangingEngine()
    window = open_window(qtbot, config_dir, engine)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and bool(window.session.run.tokens), timeout=WAIT_MS)
    with qtbot.waitSignals([window.closed, window.session.finished], timeout=WAIT_MS):
        window.close()
    assert window.session.run.outcome.kind == "stopped"
    assert worker.is_any_stuck()
    assert not gc.isenabled(), "it would destroy widgets from the thread that hangs"
    engine.release.set()
    assert worker._stuck.pop()[0].wait(WAIT_MS)
    assert not worker.is_any_stuck()
    whole(open_window(qtbot, config_dir, ScriptedEngine())).close()
    assert gc.isenabled()


def test_slow_stop_shows_notice(qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_feed, "LONG_STOP_MS", 10)
    engine = HangingEngine()
    window = open_window(qtbot, config_dir, engine)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and bool(window.session.run.tokens), timeout=WAIT_MS)
    window.parts.runs.stop()
    banner = window.parts.centre.notice_banner
    qtbot.waitUntil(lambda: banner.isVisible() and banner.accessibleName() == "Still stopping", timeout=WAIT_MS)
    finish(qtbot, window, engine.release.set)
    assert window.session.run.text == " a"
    assert not banner.isVisible(), "it is no longer true"


SCRIPT = """
import sys, threading
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from decodescope.app.session import worker
from decodescope.app.__main__ import main
from tests.ui.fake_engine import ScriptedEngine

class Stuck(ScriptedEngine):
    def load(self, request):
        QTimer.singleShot(0, QApplication.instance(), QApplication.closeAllWindows)
        threading.Event().wait()

worker.MAX_WAIT_MS = 50
sys.exit(main(["--config-dir", sys.argv[1]], Stuck()))
"""


def test_process_exits_while_worker_hangs(config_dir: Path) -> None:
    words = [sys.executable, "-c", SCRIPT, str(config_dir)]
    answer = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert (config_dir / "settings.json").exists()


def test_failing_close_step_does_not_prevent_other_steps(
    qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.setup.prompt.set_prompt("Remember me")
    seen = []

    def fail() -> None:
        raise RuntimeError("odd")

    before, after = window._before_hiding, window._after_hiding
    window.at_close((fail, *before, lambda: seen.append(window.isVisible())), (fail, *after))
    with qtbot.waitSignal(window.closed, timeout=WAIT_MS):
        window.close()
    assert json.loads((config_dir / "settings.json").read_text())["choices"]["prompt"] == "Remember me"
    assert (seen, window.isVisible()) == ([True], False), "it remembers while it can still be seen"
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_close_releases_engine_and_model(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    stored = weakref.ref(engine)
    window = whole(open_window(qtbot, config_dir, engine))
    window.close()
    del engine
    gc.collect()
    assert stored() is None, "the window may live on for a while, the model must not"
    assert window.is_closed


def test_second_close_emits_no_signal(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    window.close()
    with qtbot.assertNotEmitted(window.closed):
        window.close()
