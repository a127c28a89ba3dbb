"""Runs without text are not saved, and a failed one keeps the text on the screen."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from decodescope.core.errors import StrategyError
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.histories import history, listed_names, save_run, shown_run
from tests.ui.windows import WAIT_MS, open_window, run

UNDO = (Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)


def test_runs_replaced_before_first_token_are_not_kept(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    story = save_run(qtbot, window, "One")
    engine.delay = 3600.0  # the first token never comes, unless the run is stopped
    for number in range(10):
        window.parts.runs.run()
        qtbot.waitUntil(lambda: len(engine.runs) == number + 2, timeout=WAIT_MS)  # noqa: B023
    with qtbot.waitSignal(window.session.recorded, timeout=WAIT_MS):
        window.session.stop()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=WAIT_MS)
    window.setFocus()
    QTest.keyClick(window, *UNDO)
    assert shown_run(window).id == story
    assert listed_names(history(window)) == ["One"]
    assert not window.parts.run_navigation.can_go_forward


def test_replaced_run_without_text_is_not_worth_keeping(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine())
    save_run(qtbot, window, "One")
    begun = shown_run(window)
    assert begun.is_worth_keeping
    begun.was_replaced = True
    assert begun.is_worth_keeping, "it has a text"
    begun.sequences[0].tokens[3:] = []
    assert not begun.is_worth_keeping
    begun.was_replaced = False
    assert begun.is_worth_keeping, "it was stopped by its reader"


def test_run_failing_before_first_token_keeps_shown_run(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    story = save_run(qtbot, window, "One")
    text = shown_run(window).text
    engine.error, engine.fail_at = StrategyError("No heads.", "Choose another strategy."), 0
    assert run(qtbot, window).kind == "failed"
    assert shown_run(window).id == story
    assert shown_run(window).text == text
    assert listed_names(history(window)) == ["One"]
    assert not window.parts.run_navigation.can_go_back
    engine.error = engine.fail_at = None
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        window.parts.runs.retry()
    assert signal.args[0].kind == "completed"
    assert shown_run(window).id != story


def test_run_failing_after_first_token_is_shown(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    story = save_run(qtbot, window, "One")
    engine.error, engine.fail_at = StrategyError("No heads.", "Choose another strategy."), 2
    assert run(qtbot, window).kind == "failed"
    assert shown_run(window).id != story
    assert len(shown_run(window).tokens) == 2


def test_failed_first_run_is_not_in_history(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(error=StrategyError("No heads.", "Choose another strategy."), fail_at=0)
    window = open_window(qtbot, config_dir, engine)
    assert run(qtbot, window).kind == "failed"
    assert shown_run(window).outcome is not None
    assert listed_names(history(window)) == []
