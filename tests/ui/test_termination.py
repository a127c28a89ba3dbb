"""The program ends by a signal, a kill or the desktop: all input and settings are on the disk."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.control import persistence
from decodescope.app.start.termination import SIGNAL_NAMES, TerminationSignals, run_until_exit
from decodescope.app.window.main_window import MainWindow
from decodescope.core.events import TokenChosen
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, finish, open_window, run

ROOT = Path(__file__).parents[2]
SIGNALS = [getattr(signal, name) for name in SIGNAL_NAMES if hasattr(signal, name)]


@pytest.fixture(autouse=True, scope="module")
def _signals_are_not_ignored() -> Iterator[None]:
    """As in a terminal: a script's background jobs ignore Ctrl+C, nohup ignores the end of the session."""
    ignored = {number: signal.SIG_IGN for number in SIGNALS if signal.getsignal(number) == signal.SIG_IGN}
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number, handler in ignored.items():
        signal.signal(number, handler)


PROGRAM = """
import sys, threading
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from decodescope.app.__main__ import main
from decodescope.app.control import persistence
from decodescope.app.session import worker
from tests.ui.fake_engine import ScriptedEngine

how, arguments = sys.argv[1], sys.argv[2:]
persistence.DELAY_MS = 10 if how == "killed" else 10**8
worker.MAX_WAIT_MS = 10**8 if how == "stuck" else 5000
application = QApplication(["decodescope"])
told = []

class Stuck(ScriptedEngine):
    def stream(self, request, cancel):
        yield from super().stream(request, threading.Event())

def look():
    windows = [each for each in application.topLevelWidgets() if type(each).__name__ == "MainWindow"]
    if told or not windows or not windows[0].is_assembled:
        return
    window, parts = windows[0], windows[0].parts
    if not look.has_begun:
        look.has_begun = True
        parts.settings_controller.choose("", "beam_search")
        parts.settings_controller.set_values({"max_new_tokens": 7})
        parts.setup.prompt.set_prompt("AN HOUR OF WORK")
        if not parts.session.busy:
            parts.runs.run()
    elif parts.session.run is not None and len(parts.session.run.tokens) > 9 and not is_due(parts):
        told.append(print("READY", flush=True))

def is_due(parts):
    return how == "killed" and parts.settings_saver._saver.is_pending

look.has_begun = False
timer = QTimer(interval=10)
timer.timeout.connect(look)
timer.start()
kind = Stuck if how == "stuck" else ScriptedEngine
sys.exit(main(arguments, kind(hold=threading.Event())))
"""


def start(config_dir: Path, how: str = "asked", *options: str) -> subprocess.Popen[str]:
    """The program in a process of its own, with a run under way that waits after its tenth token."""
    command = [sys.executable, "-c", PROGRAM, how, "--config-dir", str(config_dir), *options]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line == "READY\n", process.communicate()[1]
    return process


def ended(process: subprocess.Popen[str]) -> int:
    _out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    return process.returncode


def choices(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "settings.json").read_text("utf-8"))["choices"]
    return found


def check(folder: Path) -> None:
    stored = choices(folder)
    assert (stored["prompt"], stored["strategy"]) == ("AN HOUR OF WORK", "beam_search")
    assert stored["values"]["beam_search"]["max_new_tokens"] == 7


@pytest.mark.every(3)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends another process without a signal")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_signal_terminates_program_and_saves_input(config_dir: Path, number: signal.Signals) -> None:
    process = start(config_dir)
    process.send_signal(number)
    assert ended(process) == 128 + number
    check(config_dir)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends another process without a signal")
def test_recording_is_readable_after_signal(config_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.decodescope"
    process = start(config_dir, "asked", "--run", "--prompt", "Once", "--record", str(path))
    process.send_signal(signal.SIGTERM)
    assert ended(process) == 128 + signal.SIGTERM
    assert len([event for event in core.replay(path) if isinstance(event, TokenChosen)]) >= 10


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends another process without a signal")
def test_signal_stops_screenshot_program_and_closes_recording(config_dir: Path, tmp_path: Path) -> None:
    picture, record = tmp_path / "x.png", tmp_path / "run.decodescope"
    process = start(config_dir, "asked", "--run", "--screenshot", str(picture), "--record", str(record))
    process.send_signal(signal.SIGINT)
    assert ended(process) == 128 + signal.SIGINT
    assert not picture.exists(), "the run has not come to its end"
    assert len([event for event in core.replay(record) if isinstance(event, TokenChosen)]) >= 10


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends another process without a signal")
def test_second_signal_terminates_immediately(config_dir: Path) -> None:
    process = start(config_dir, "stuck")
    process.send_signal(signal.SIGTERM)
    path = config_dir / "settings.json"
    while process.poll() is None and not (path.exists() and "AN HOUR" in path.read_text("utf-8")):
        pass  # the window has saved, and now waits for a worker that does not come back
    process.send_signal(signal.SIGTERM)
    assert ended(process) == -signal.SIGTERM
    check(config_dir)


def test_kill_keeps_saved_input(config_dir: Path) -> None:
    process = start(config_dir, "killed")
    process.kill()
    ended(process)
    check(config_dir)


# In this process


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> MainWindow:
    monkeypatch.setattr(persistence, "DELAY_MS", 5)
    return open_window(qtbot, config_dir)


def written(qtbot: QtBot, window: MainWindow) -> dict[str, Any]:
    qtbot.waitUntil(lambda: not window.parts.settings_saver._saver.is_pending, timeout=WAIT_MS)
    return choices(window.parts.store.folder)


def test_every_change_is_saved_soon(qtbot: QtBot, window: MainWindow) -> None:
    parts = window.parts
    parts.setup.prompt.editor.setPlainText("typed")
    assert written(qtbot, window)["prompt"] == "typed"
    parts.toolbar.seed.spin.setValue(77)
    assert written(qtbot, window)["seed"] == 77
    parts.settings_controller.choose(strategy="sampling")
    parts.settings_controller.set_values({"temperature": 0.5})
    assert written(qtbot, window)["values"]["sampling"] == {"temperature": 0.5}
    parts.setup.prompt.mode.button("chat").click()
    assert written(qtbot, window)["chat"] is True
    parts.centre.show_view("tree")
    written(qtbot, window)
    assert json.loads((parts.store.folder / "settings.json").read_text("utf-8"))["layout"]["view"] == "tree"


def test_saving_does_not_change_parameters(qtbot: QtBot, window: MainWindow) -> None:
    """Saved values of a strategy must not override values that are set later."""
    controller, values = window.parts.settings_controller, window.parts.setup.parameters.changed_values
    controller.choose(strategy="sampling")
    controller.set_values({"temperature": 0.7})
    written(qtbot, window)
    controller.set_values({"temperature": 0.9})
    controller.choose(strategy="beam_search")
    controller.choose(strategy="sampling")
    assert values() == {"temperature": 0.9}
    assert written(qtbot, window)["values"]["sampling"] == {"temperature": 0.9}


def test_unchanged_settings_are_not_written_again(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.prompt.editor.setPlainText("typed")
    written(qtbot, window)
    path = window.parts.store.path
    path.write_text("{}", "utf-8")
    window.parts.settings_saver.save_soon()
    qtbot.waitUntil(lambda: not window.parts.settings_saver._saver.is_pending, timeout=WAIT_MS)
    assert path.read_text("utf-8") == "{}"


def test_settings_are_not_saved_during_tour(qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = window.parts
    parts.setup.prompt.editor.setPlainText("mine")
    written(qtbot, window)
    keeper = parts.settings_saver
    monkeypatch.setattr(keeper, "_is_held", lambda: True)
    parts.setup.prompt.editor.setPlainText("the tour's")
    keeper._save_changes()
    keeper.save_settings()
    assert choices(parts.store.folder)["prompt"] == "mine"
    assert keeper._saver.is_pending, "it is written once the tour has ended"


def test_chat_is_saved_while_answer_is_generated(
    qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "DELAY_MS", 5)
    hold = threading.Event()
    window = open_window(qtbot, config_dir, ScriptedEngine(hold=hold))
    prompt = window.parts.setup.prompt
    window.session.load_model("storyteller")
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=WAIT_MS)
    prompt.mode.button("chat").click()
    prompt.editor.setPlainText("Hello")
    window.parts.runs.run()

    def turns() -> list[str]:
        paths = list((config_dir / "chats").glob("*.json"))
        return [turn["content"] for turn in json.loads(paths[0].read_text("utf-8"))["turns"]] if paths else []

    qtbot.waitUntil(lambda: len(turns()) == 2 and "hill" not in turns()[1] and "fox" in turns()[1], timeout=WAIT_MS)
    assert turns()[0] == "Hello"
    finish(qtbot, window, hold.set)
    assert turns()[1].endswith("lost bird.")
    window.close()


class ExternallyEndedLoop(asyncio.SelectorEventLoop):
    """An event loop in which the desktop session ends instead of the program running."""

    def run_until_complete(self, future: Any) -> Any:
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.commitDataRequest.emit(None)
        future.cancel()
        super().run_until_complete(asyncio.wait([future]))
        return 3


def test_desktop_logout_saves_settings(qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def program() -> int:
        return 0

    monkeypatch.setattr(persistence, "DELAY_MS", 10**8)
    window = open_window(qtbot, config_dir)
    window.parts.setup.prompt.editor.setPlainText("logging off")
    loop = ExternallyEndedLoop()
    assert run_until_exit(loop, program(), window) == 3
    loop.close()
    assert choices(config_dir)["prompt"] == "logging off"


def test_stop_restores_signal_handlers() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    signals = TerminationSignals()
    signals.start()
    assert all(signal.getsignal(number) == signals._on_signal for number in SIGNALS)
    signals.stop()
    signals.stop()
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert signal.set_wakeup_fd(-1) == -1


# Several windows


def test_each_window_saves_its_own_chat(qtbot: QtBot, config_dir: Path) -> None:
    first, second = open_window(qtbot, config_dir), open_window(qtbot, config_dir)
    for window, words in ((first, "Mine"), (second, "Yours")):
        window.parts.setup.prompt.set_prompt(words, is_chat=True)
        run(qtbot, window)
    saved = [json.loads(path.read_text("utf-8"))["turns"] for path in (config_dir / "chats").glob("*.json")]
    assert sorted(turns[0]["content"] for turns in saved) == ["Mine", "Yours"]
    third = open_window(qtbot, config_dir)
    assert third.parts.chat.conversation.turns == [], "the last chat is open in the second window"
    assert third.parts.centre.notice_banner.last_title == "Another window is open"
    third.close()
    second.close()
    first.close()
    again = open_window(qtbot, config_dir)
    assert [turn.content for turn in again.parts.chat.conversation.turns][:1] == ["Yours"]
    assert not again.parts.centre.notice_banner.isVisible()
