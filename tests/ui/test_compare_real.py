"""Comparisons and several samples through the window, over the bundled models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.views.compare.view import CompareView
from decodescope.app.views.tree.view import TreeView
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import WAIT_MS, finish, open_core_window

MODELS = ("storyteller", "storyteller-draft", "summarizer")
TEXTS = 6


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = open_core_window(qtbot, config_dir)
    window.parts.settings_controller.choose(strategy="sampling")
    window.parts.settings_controller.set_values({"max_new_tokens": 8, "temperature": 1.2})
    window.parts.setup.prompt.set_prompt("Once upon a time")
    return window


def test_comparison_of_three_models_reloads_first(qtbot: QtBot, window: MainWindow) -> None:
    finish(qtbot, window, window.parts.runs.run)
    window.parts.centre.show_view("compare")
    view = next(view for view in window.parts.centre.views if isinstance(view, CompareView))
    view.kind.button("models").click()
    view.setup.chips.set_wanted({entry.name: entry.name in MODELS for entry in view.setup.entries})
    view.setup.offer("models", window.session.run)
    with qtbot.waitSignal(window.session.modelReady, timeout=WAIT_MS) as ready:
        view.compare_or_stop()
    assert ready.args[0].name == "storyteller"
    runs = {entry.candidate.key: entry.run for entry in view.comparison.entries}
    assert {name: run.started.model for name, run in runs.items()} == {name: name for name in MODELS}
    assert all(len(run.sequences[0].tokens) > 0 for run in runs.values())
    assert runs["storyteller"].sequences[0].text == window.session.run.sequences[0].text
    window.close()


def test_parallel_samples_match_single_runs(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.centre.show_view("tree")
    view = next(view for view in window.parts.centre.views if isinstance(view, TreeView))
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        window.parts.runs.run_samples(TEXTS)
    run = window.session.run
    assert sum(view.tree.samples.sample_tree.endings().values()) == TEXTS
    model, rows = core.load("storyteller"), view.samples.rows_model.rows
    assert [row.seed for row in rows] == [run.request.seed + n for n in range(TEXTS)]
    config = {**run.request.config, "num_return_sequences": 1}
    for row in rows:
        single = replace(core.Request("Once upon a time", config, "sampling"), seed=row.seed)
        assert core.run(model, single).texts[0] == row.text
    window.close()
