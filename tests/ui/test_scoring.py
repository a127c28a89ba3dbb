"""Scoring a text in the window: the prompt, a run's text, two models on one text."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.state import token_stats
from decodescope.app.state.run import Run
from decodescope.app.views.tokens.token_strips import ScoreStrip
from decodescope.app.views.tokens.view import TokenView
from decodescope.app.window.main_window import MainWindow
from tests.ui.layout import remaining, settle
from tests.ui.windows import WAIT_MS, find, open_core_window, open_window, run

TEXT = "Once upon a time, there was a fox. She lived in a submarine."


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    """Over the real core, with the storyteller."""
    window = open_core_window(qtbot, config_dir)
    window.parts.setup.prompt.set_prompt(TEXT)
    return window


def finished(qtbot: QtBot, window: MainWindow, act: object) -> Run:
    with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS):
        act()  # type: ignore[operator]
    assert window.session.run is not None
    return window.session.run


def test_score_button_scores_prompt_in_every_view(qtbot: QtBot, window: MainWindow) -> None:
    button = find(window, QToolButton, "scoreButton")
    shown = finished(qtbot, window, lambda: qtbot.mouseClick(button, Qt.MouseButton.LeftButton))
    wanted = core.score(core.load("storyteller"), TEXT)
    assert [(one.id, one.rank) for one in shown.tokens] == [(one.id, one.rank) for one in wanted]
    assert shown.outcome is not None
    assert shown.outcome.message == f"{len(wanted)} tokens scored"
    view, strip = find(window, TokenView, "tokenView"), find(window, ScoreStrip, "scoreStrip")
    assert view.area.paint_options.colouring == "band"
    assert strip.summary.text().startswith(token_stats.summary_text(token_stats.compute_score_stats(wanted)))
    assert not strip.chip_row.isVisible()
    window.session.select_token(3)
    assert "is part of the given text" in window.parts.inspector.page.sentence.text()
    window.session.move_cursor(2)
    assert shown.text == "Once upon"
    assert not window.parts.changes.changes


@pytest.mark.slow
def test_two_model_score_links_to_largest_divergence(qtbot: QtBot, window: MainWindow) -> None:
    shown = finished(qtbot, window, lambda: window.parts.scoring._score_prompt("storyteller-draft"))
    view, strip = find(window, TokenView, "tokenView"), find(window, ScoreStrip, "scoreStrip")
    assert view.area.paint_options.colouring == "difference"
    assert len(shown.comparisons) == len(shown.tokens)
    worst = token_stats.largest_divergences(shown.comparisons, 1)[0]
    assert "storyteller-draft" in strip.comparison.text()
    chips = [chip for chip in strip.findChildren(QPushButton) if chip.isVisible()]
    qtbot.mouseClick(chips[0], Qt.MouseButton.LeftButton)
    assert shown.selected == worst.step
    second = window.parts.inspector.page.comparison
    assert second.isVisible()
    for size, scale in (((1280, 800), 1.0), ((900, 600), 1.5), ((900, 600), 2.0)):
        window.parts.appearance.set_font_scale(scale)
        window.resize(*size)
        settle(window)
        parts = (window.parts.setup, window.parts.centre, window.parts.inspector)
        assert [reported for part in parts for reported in remaining(part)] == [], (size, scale)
    shown = finished(qtbot, window, lambda: window.parts.scoring._score_prompt("storyteller-window"))
    assert shown.outcome is not None
    assert shown.outcome.kind in ("completed", "failed")


def test_score_run_includes_prompt(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.settings_controller.choose(strategy="greedy")
    window.parts.settings_controller.set_values({"max_new_tokens": 8})
    parent = finished(qtbot, window, window.parts.runs.run)
    shown = finished(qtbot, window, window.parts.scoring.score_run)
    assert [one.id for one in shown.tokens] == [*(one.id for one in parent.prompt[1:]), *(t.id for t in parent.tokens)]
    assert {one.rank for one in shown.tokens[-8:]} == {1}
    assert shown.request.parent == parent.id
    window.session.select_token(2)
    branch = finished(qtbot, window, find(window, QPushButton, "branchButton").click)
    assert branch.text.startswith("Once upon")


def test_score_menu_lists_second_models_with_reasons(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.scoring.fill_menu()
    menu = find(window, QToolButton, "scoreButton").menu()
    titles = {action.text(): action for action in menu.actions()}
    below = titles["Score this text with two models"].menu()
    assert below is not None
    offered = {action.text(): action for action in below.actions()}
    reasons = {title: action.toolTip() for title, action in offered.items() if not action.isEnabled()}
    assert any("encoder–decoder" in reason for reason in reasons.values())
    assert any(action.isEnabled() for action in offered.values())
    assert not titles["Score the shown run (prompt and answer)"].isEnabled()


def test_refilling_score_menu_deletes_old_menus(window: MainWindow) -> None:
    menu = find(window, QToolButton, "scoreButton").menu()
    for _ in range(3):
        window.parts.scoring.fill_menu()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert len(menu.findChildren(QMenu)) == 2


def test_score_of_empty_prompt_shows_error(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.setup.prompt.set_prompt("")
    window.parts.scoring.score_prompt()
    assert "The prompt is empty" in window.parts.centre.error_banner.accessibleDescription()
    run(qtbot, window)
    assert window.findChild(ScoreStrip) is None
