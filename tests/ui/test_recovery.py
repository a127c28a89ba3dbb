"""A process killed during a run: the partial run is found and listed at the next start."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.features.history.controller import history
from decodescope.app.window.main_window import MainWindow
from tests.ui.fake_engine import STORY
from tests.ui.windows import open_window, run

_WINDOW = """
import sys, threading
from pathlib import Path
from tests import conftest  # no network, no screen
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from decodescope.app import build_window
from tests.ui.fake_engine import ScriptedEngine
application = QApplication([])
folder, prompts = Path(sys.argv[1]), sys.argv[2:]
windows, never = [], threading.Event()  # no run comes to its end, however late it is killed
for prompt in prompts:
    window = build_window(folder, ScriptedEngine(hold=never))
    window.show()
    window.parts.setup.prompt.set_prompt(prompt)
    window.parts.runs.run()
    windows.append(window)
def look():
    found = list((folder / "history" / "under-way").glob("*/*.decodescope"))
    if len(found) == len(prompts) and all(path.stat().st_size > 4000 for path in found):
        print("written", flush=True)
timer = QTimer(interval=20)
timer.timeout.connect(look)
timer.start()
application.exec()
"""


@pytest.fixture(scope="module")
def killed_session_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a program that was killed while two of its windows ran something."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-c", _WINDOW, str(folder), "Killed on the way", "Killed too"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert program.stdout is not None
    assert program.stdout.readline() == "written\n"
    program.kill()
    program.communicate()
    return folder


@pytest.fixture
def killed(killed_session_folder: Path, config_dir: Path) -> Path:
    """A copy of it."""
    shutil.copytree(killed_session_folder, config_dir, dirs_exist_ok=True)
    return config_dir


def open_recovering_window(qtbot: QtBot, folder: Path) -> MainWindow:
    """A window that has found something."""
    window = open_window(qtbot, folder)
    qtbot.waitUntil(window.parts.centre.notice_banner.isVisible)
    assert window.parts.centre.notice_banner.title.text() == history.TITLE
    return window


def press(window: MainWindow, action: str) -> None:
    button = window.parts.centre.notice_banner.button(action)
    assert button is not None
    button.click()


def recordings(folder: Path) -> list[Path]:
    return list((folder / "history" / "under-way").rglob("*.decodescope"))


@pytest.mark.slow
def test_partial_run_of_killed_process_is_shown_and_saved(qtbot: QtBot, killed: Path, config_dir: Path) -> None:
    recordings(killed)[0].unlink()
    prompt = core.trace.read(recordings(killed)[0]).header.request["prompt"]
    window = open_recovering_window(qtbot, config_dir)
    assert "A run was in progress" in window.parts.centre.notice_banner.accessibleDescription()
    window.parts.messages.dismiss()
    window.close()
    window = open_recovering_window(qtbot, config_dir)  # the notice returns until the user decides
    press(window, history.SHOW)
    shown = window.session.run
    assert shown is not None
    assert shown.outcome is not None
    assert len(shown.text) > 0
    assert "".join(STORY).startswith(shown.text)
    assert shown.outcome.message == f"cut short after {len(shown.tokens)} tokens"
    assert shown.request.prompt == prompt
    store = window.history.store
    assert store is not None
    assert [record.opening for record in store.records(store.ids("killed"))] == [prompt]
    assert recordings(config_dir) == []
    assert (config_dir / "history" / "under-way").exists()
    window.close()
    assert not open_window(qtbot, config_dir).parts.centre.notice_banner.isVisible()


def test_removed_recording_shows_error_and_others_are_shown(qtbot: QtBot, killed: Path, config_dir: Path) -> None:
    window = open_recovering_window(qtbot, config_dir)
    recordings(config_dir)[0].unlink()
    press(window, history.SHOW)
    assert "does not exist" in window.parts.centre.error_banner.accessibleDescription()
    assert window.parts.centre.error_banner.isVisible()
    assert window.session.run is not None
    assert window.session.run.outcome is not None
    assert window.session.run.outcome.kind == "stopped"


def test_recovered_runs_can_be_discarded(qtbot: QtBot, killed: Path, config_dir: Path) -> None:
    window = open_recovering_window(qtbot, config_dir)
    assert "2 runs were in progress" in window.parts.centre.notice_banner.accessibleDescription()
    other = open_window(qtbot, config_dir)
    assert other.history.store is not None
    assert "in progress" not in other.parts.centre.notice_banner.accessibleDescription(), "one window has the runs"
    press(window, history.FORGET)
    assert recordings(config_dir) == []
    assert window.history.store is not None
    assert window.history.store.ids() == []


def test_empty_or_invalid_recording_is_not_offered(qtbot: QtBot, config_dir: Path) -> None:
    folder = config_dir / "history" / "under-way" / "0123"
    folder.mkdir(parents=True)
    for number, content in enumerate((b"", b"no recording", b"DECODESCOPE" * 10)):
        (folder / f"{number:032x}.decodescope").write_bytes(content)
    window = open_window(qtbot, config_dir)
    assert window.history.store is not None
    assert not window.parts.centre.notice_banner.isVisible()
    assert recordings(config_dir) == []


def test_saved_run_with_unmoved_recording_is_completed_at_start(
    qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the two."""
    window = open_window(qtbot, config_dir)
    store = window.history.store
    assert store is not None
    with monkeypatch.context() as patched:
        patched.setattr(type(store), "move_recording_in", lambda *_: None)
        with qtbot.waitSignal(window.history.runSaved):
            run(qtbot, window)
    window.close()
    again = open_window(qtbot, config_dir)
    assert again.history.store is not None
    assert not again.parts.centre.notice_banner.isVisible()
    stored = again.history.store.ids()[0]
    assert len(again.history.open_run(stored).tokens) == len(STORY)
