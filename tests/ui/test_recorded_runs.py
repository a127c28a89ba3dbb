"""Recorded runs in the window: views show them exactly as they showed the live run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import qasync
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.session.engine_proxy import RecordingEngine
from decodescope.app.start import launch
from decodescope.app.start.cli import parse
from decodescope.app.state.request_json import request_to_json
from decodescope.app.state.run import Run
from decodescope.app.window.main_window import MainWindow
from decodescope.core.errors import TraceError
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import open_window, run

WAIT_MS = 60_000
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampling": {"temperature": 0.9, "top_p": 0.9},
    "beam_search": {"num_beams": 3},
    "contrastive": {},
    "assisted": {},
    "token_tree": {},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded")


def shown(window: MainWindow) -> dict[str, Any]:
    """Everything that can be read off the window about its run."""
    parts = window.parts
    length = window.session.run.length
    found: dict[str, Any] = {"outcome": parts.status.outcome.text()}
    for cursor in (length // 2, length):
        window.session.move_cursor(cursor)
        window.session.select_token(min(3, cursor - 1))
        for view in parts.centre.created_views:
            found[f"{view.objectName()} {cursor}"] = [list(row) for row in view.export_table()]
        found[f"inspector {cursor}"] = texts(parts.inspector)
        found[f"text {cursor}"] = window.session.run.text
    found["timeline"] = [list(row) for row in parts.timeline.export_table()]
    return found


def texts(part: Any) -> list[str]:
    return [label.text() for label in part.findChildren(QLabel) if label.isVisibleTo(part)]


@pytest.mark.slow
def test_recorded_run_is_shown_like_live_run(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    """One window with the real core, one run of each kind: recorded, another run shown, opened again."""
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS):
        window.show()
    parts = window.parts
    parts.centre.create_remaining_views()
    parts.centre.show_view("memory")  # which the inspector describes as soon as a run is shown
    for strategy, values in WAYS.items():
        assert not parts.settings_controller.choose("storyteller", strategy, drafts=drafts_for(strategy))
        parts.settings_controller.set_values({"max_new_tokens": 10, **values})
        parts.setup.prompt.set_prompt("Once upon a time there was")
        with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
            parts.runs.run()
        assert signal.args[0].kind == "completed", strategy
        reported, before = texts(parts.inspector), shown(window)
        events, request = window.session.run.events, window.session.run.request
        path = tmp_path / f"{strategy}.decodescope"
        parts.recorded_runs.save(str(path))
        assert window.session.show(Run(request))
        assert shown_nothing(window)
        parts.recorded_runs.open(str(path))
        assert texts(parts.inspector) == reported, strategy
        assert window.session.run.events == events
        assert request_to_json(window.session.run.request) == request_to_json(request)
        assert shown(window) == before, strategy


def drafts_for(strategy: str) -> list[str]:
    return ["storyteller-draft"] if core.strategies.registry[strategy].takes_drafters else []


def shown_nothing(window: MainWindow) -> bool:
    return not window.session.run.tokens and not window.session.run.events


def recorded(qtbot: QtBot, config_dir: Path, path: Path) -> Run:
    """A scripted run, saved."""
    window = open_window(qtbot, config_dir / "other")
    window.parts.setup.prompt.set_prompt("A fox")
    run(qtbot, window)
    window.parts.recorded_runs.save(str(path))
    window.close()
    return window.session.run


def test_opened_recording_shows_banner_and_keeps_prompt(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.decodescope"
    live = recorded(qtbot, config_dir, path)
    window = open_window(qtbot, config_dir)
    window.parts.setup.prompt.set_prompt("What I was writing")
    window.parts.recorded_runs.choose_file_to_open()
    (dialog,) = window.findChildren(QFileDialog)
    dialog.fileSelected.emit(str(path))
    dialog.close()
    assert window.session.run.events == live.events
    banner = window.parts.centre.notice_banner
    assert "nothing is computed now" in banner.cause.text()
    assert window.parts.setup.prompt.editor.toPlainText() == "What I was writing"
    qtbot.mouseClick(banner.button("use_recorded_settings"), Qt.MouseButton.LeftButton)
    assert window.parts.setup.prompt.editor.toPlainText() == "A fox"
    run(qtbot, window)
    assert not banner.isVisible()


def test_a_file_that_is_dropped_onto_the_window_is_opened(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.decodescope"
    live = recorded(qtbot, config_dir, path)
    window = open_window(qtbot, config_dir)
    for name, taken in ((str(tmp_path / "program.exe"), False), (str(path), True)):
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(name)])
        place, copy = QPointF(3, 3), Qt.DropAction.CopyAction
        buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        entering = QDragEnterEvent(place.toPoint(), copy, data, buttons, keys)
        entering.ignore()
        QApplication.sendEvent(window, entering)
        assert entering.isAccepted()  # a file of another kind too: the window says why it does nothing with it
        QApplication.sendEvent(window, QDropEvent(place, copy, data, buttons, keys))
        assert (window.session.run is not None) == taken
    assert window.session.run.events == live.events


def test_invalid_recording_shows_error_and_keeps_run(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = open_window(qtbot, config_dir)
    run(qtbot, window)
    before = window.session.run
    (tmp_path / "text.decodescope").write_text("nothing of the kind")
    window.parts.recorded_runs.open(str(tmp_path / "text.decodescope"))
    assert "is not a recording" in window.parts.centre.error_banner.cause.text()
    assert window.session.run is before


def test_truncated_recording_is_shown_with_notice(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.decodescope"
    live = recorded(qtbot, config_dir, path)
    path.write_bytes(path.read_bytes()[:-3])
    window = open_window(qtbot, config_dir)
    window.parts.recorded_runs.open(str(path))
    assert window.session.run.events == live.events
    assert "is incomplete" in window.parts.centre.notice_banner.cause.text()


def test_recording_of_unknown_strategy_is_shown(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    from decodescope.app.state.recorded_run import WINDOW_REQUEST_KEY

    live = recorded(qtbot, config_dir, tmp_path / "run.decodescope")
    plain = {**request_to_json(live.request), "strategy": "divination", "cache": "crystal_ball"}
    path = tmp_path / "odd.decodescope"
    assert list(core.record(path, live.events, live.request, extra={WINDOW_REQUEST_KEY: plain})) == live.events
    window = open_window(qtbot, config_dir)
    window.parts.centre.create_remaining_views()
    window.parts.recorded_runs.open(str(path))
    shown(window)
    reported = dict(window.parts.changes.changes)
    assert reported["Strategy"].startswith("divination")
    window.parts.settings_controller.apply_request(window.session.run.request)
    assert "divination" in window.parts.centre.notice_banner.cause.text()


def test_unwritable_recording_file_shows_error(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.recorded_runs.choose_save_path()
    assert window.parts.centre.notice_banner.title.text() == "Nothing to save yet"
    run(qtbot, window)
    window.parts.recorded_runs.save(str(tmp_path / "none" / "run.decodescope"))
    assert "cannot be recorded" in window.parts.centre.error_banner.cause.text()
    assert list(tmp_path.rglob("*.part")) == []


def test_record_option_records_first_run(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.decodescope"
    window = open_window(qtbot, config_dir, RecordingEngine(ScriptedEngine(), path))
    run(qtbot, window)
    first = window.session.run
    run(qtbot, window)
    assert core.trace.read(path).events == first.events
    assert core.trace.read(path).is_whole


def test_unwritable_record_path_fails_run_with_trace_error(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = open_window(qtbot, config_dir, RecordingEngine(ScriptedEngine(), tmp_path / "none" / "run"))
    assert run(qtbot, window).error.kind == TraceError.__name__


def test_command_line_shows_recording_with_report_of_view(
    qtbot: QtBot, qapp: QApplication, config_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "run.decodescope", list[list[str]]()
    live = recorded(qtbot, config_dir, path)
    monkeypatch.setattr(launch, "save_window_picture", lambda window, _path: seen.append(texts(window.parts.inspector)))
    engine = ScriptedEngine()
    window = build_window(config_dir, engine, assembled=False)
    qtbot.addWidget(window)
    options = parse([str(path), "--view", "memory", "--font-scale", "1.25", "--screenshot", str(tmp_path / "out.png")])
    with qasync.QEventLoop(qapp, set_running_loop=False) as loop:
        assert loop.run_until_complete(launch.start(window, options)) == 0
    asyncio.set_event_loop(None)
    assert "CONTENTS" in [text.upper() for text in seen[0]]
    assert window.session.run.events == live.events
    assert engine.runs == []


LOOK = """
import sys
from decodescope.app.control import memory_fit
memory_fit.FIRST_MS = memory_fit.DELAY_MS = 0
from PySide6.QtWidgets import QApplication
application = QApplication([])
from decodescope.app import build_window
from decodescope.app.start import launch
from decodescope.app.start.cli import parse
from decodescope.app.views import VIEWS
window = build_window(sys.argv[1])
options = parse([sys.argv[2]])
launch.apply_options(window, options)
window.show()
launch.show_recorded(window, options)
for view in VIEWS:
    assert window.parts.centre.show_view(view.name) or view.hidden_when_empty
    for _ in range(20):
        application.processEvents()
print(window.session.run.text, window.parts.chosen.strategy.name, sep="|")
window.close()  # waits for the worker, whatever it was asked
print([name for name in ("torch", "transformers") if name in sys.modules])
"""


@pytest.mark.slow
def test_a_recorded_run_is_shown_without_torch(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.decodescope"
    live = recorded(qtbot, config_dir, path)
    words = [sys.executable, "-c", LOOK, str(tmp_path / "settings"), str(path)]
    reported = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert reported == f"{live.text}|{live.request.strategy}\n[]\n"
