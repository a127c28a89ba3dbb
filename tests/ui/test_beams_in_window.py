"""Beam strategies on the bundled model, from the window: the tree is navigated, folded, filtered and stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.state.run import Run
from decodescope.app.views.tree.view import TreeView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.models import catalog

WAIT_MS = 60_000
STRATEGIES = {
    "beam_search": {"num_beams": 3},
    "beam_sampling": {"num_beams": 3},
    "diverse_beam_search": {"num_beams": 4, "num_beam_groups": 2},
    "constrained_beam_search": {"num_beams": 3, "must_contain": "river"},
}

pytestmark = pytest.mark.skipif(
    not any(entry.name == "storyteller" for entry in catalog.available()), reason="the bundled model is not here"
)


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = build_window(config_dir)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    with qtbot.waitExposed(window):
        window.show()
    assert window.parts.centre.show_view("tree")
    return window


def tree_of(window: MainWindow) -> TreeView:
    view = window.findChild(TreeView, "treeView")
    assert view is not None
    return view


def has_beams(run: Run, events: object) -> bool:
    return run.beams is not None


def run(qtbot: QtBot, window: MainWindow, strategy: str, tokens: int) -> None:
    assert window.parts.settings_controller.choose("storyteller", strategy) == []
    assert window.parts.settings_controller.set_values({"max_new_tokens": tokens, **STRATEGIES[strategy]}) == []
    window.parts.setup.prompt.editor.setPlainText("Once upon a time, there was a little")
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        window.parts.runs.run()
    assert signal.args[0].error is None


@pytest.mark.slow
def test_every_beam_strategy_grows_navigable_tree(qtbot: QtBot, window: MainWindow) -> None:
    view = tree_of(window)
    for strategy in STRATEGIES:
        run(qtbot, window, strategy, 6)
        canvas, beams = view.canvas, window.session.run.beams
        assert canvas.canvas_state.scene.last_depth == len(beams.steps) == 6
        assert len(canvas.canvas_state.scene.model) == 1 + sum(len(step.candidates) for step in beams.steps)
        assert [row.text for row in view.table.rows_model.rows] == [h.text for h in beams.ranking.hypotheses]
        assert window.session.run.text == beams.ranking.hypotheses[0].text
        for key in (Qt.Key.Key_End, Qt.Key.Key_Left, Qt.Key.Key_Left):
            QTest.keyClick(canvas, key)
        assert canvas.selection.selected == canvas.canvas_state.style.best_path[-3]
        assert view.report is not None
        assert view.report.sentence
        QTest.keyClick(canvas, Qt.Key.Key_Return)
        assert not canvas.canvas_state.scene.is_shown(canvas.canvas_state.style.best_path[-1])
        canvas.canvas_state.set_pruned("hidden")
        assert not any(
            canvas.canvas_state.scene.model.nodes[node].state == "pruned"
            for node in canvas.canvas_state.scene.layout.rows
        )
        canvas.canvas_state.set_pruned("dimmed")


def test_constrained_beam_search_satisfies_and_marks_constraints(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window, "constrained_beam_search", 8)
    beams = window.session.run.beams
    assert all("river" in hypothesis.text for hypothesis in beams.ranking.hypotheses)
    met = tree_of(window).canvas.canvas_state.scene.model.nodes[beams.ranking.hypotheses[0].node].progress
    assert met is not None
    assert met[0] == met[1] > 0


def test_stopped_beam_search_can_be_run_again(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window, "beam_search", 4)
    view = tree_of(window)
    assert window.parts.settings_controller.set_values({"max_new_tokens": 400}) == []
    with qtbot.waitSignal(window.session.eventsArrived, timeout=WAIT_MS, check_params_cb=has_beams):
        window.parts.runs.run()
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS) as signal:
        window.session.stop()
    assert signal.args[0].kind == "stopped"
    steps = len(window.session.run.beams.steps)
    assert 0 < steps < 400
    assert view.canvas.canvas_state.scene.last_depth == steps
    assert view.table.rows_model.rows
    run(qtbot, window, "beam_search", 4)
    assert view.canvas.canvas_state.scene.last_depth == 4
