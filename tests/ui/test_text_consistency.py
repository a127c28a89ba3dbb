"""Texts of the window agree with each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.features.tours.panel.tour_chooser import TourChooser
from decodescope.app.features.tours.state import load_tours
from decodescope.app.views.chat.area import EMPTY_HINT
from decodescope.app.window.main_window import MainWindow
from decodescope.core import strategies
from decodescope.core.errors import PromptTooLongError
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, open_window, run


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> MainWindow:
    return open_window(qtbot, config_dir, engine)


def fail(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    engine.fail_at, engine.error = 0, PromptTooLongError(600, 512)
    run(qtbot, window)
    assert window.parts.status.outcome.text() == "The prompt cannot be used"


def test_closing_error_clears_status_line(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    fail(qtbot, window, engine)
    window.parts.centre.error_banner.close_button.click()
    assert window.parts.status.outcome.text() == ""


def test_editing_prompt_clears_failure_from_status_line(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    fail(qtbot, window, engine)
    window.parts.setup.prompt.set_prompt("Something shorter")
    assert window.parts.status.outcome.text() == ""


def test_editing_prompt_keeps_outcome_in_status_line(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    reported = window.parts.status.outcome.text()
    assert reported
    window.parts.setup.prompt.set_prompt("Something else")
    assert window.parts.status.outcome.text() == reported


def test_guess_game_hides_outcome(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    reported = window.parts.status.outcome.text()
    with qtbot.waitSignal(window.parts.guess.questionShown, timeout=WAIT_MS):
        window.parts.guess.start()
    assert window.parts.status.outcome.text() == ""
    window.parts.guess.leave()
    assert window.parts.status.outcome.text() == reported


def test_more_settings_button_uses_singular_for_one(window: MainWindow) -> None:
    panel = window.parts.setup.parameters
    for strategy in window.parts.chosen.strategy.registry:
        window.parts.settings_controller.choose(strategy=strategy)
        for key, members in strategies.grouped_settings(strategies.registry[strategy]).items():
            hidden, button = sum(parameter.advanced for parameter in members), panel.groups[key].more_button
            if 0 < hidden < len(members):
                noun = "setting" if hidden == 1 else "settings"
                assert button.text().startswith(f"{hidden} more {noun}")
                assert (hidden == 1) == ("settings" not in button.text())


def test_inspector_heading_omits_newest_after_run(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    qtbot.waitUntil(lambda: window.parts.inspector.page.heading.text() != "", timeout=WAIT_MS)
    run_shown = window.session.run
    assert run_shown is not None
    qtbot.waitUntil(lambda: f"TOKEN {len(run_shown.tokens)}" in window.parts.inspector.page.heading.text())
    assert "NEWEST" not in window.parts.inspector.page.heading.text()


def test_empty_chat_hint_applies_to_both_modes() -> None:
    assert "Choose Chat" not in EMPTY_HINT


def test_stated_tour_length_matches_tours(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.welcome.show()
    page = window.parts.welcome.page
    assert page is not None
    reported = " ".join(label.text() for label in page.findChildren(type(window.parts.status.outcome).__mro__[1]))
    assert "minute and a half" not in reported
    chooser = TourChooser(*load_tours())
    qtbot.addWidget(chooser)
    assert all(tour.seconds <= 75 for tour in load_tours()[0])
