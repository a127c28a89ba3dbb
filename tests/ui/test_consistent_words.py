"""Texts of the window agree with each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.features.tours.panel.tour_chooser import TourChooser
from decodescope.app.features.tours.state import load_tours
from decodescope.app.views.chat.area import EMPTY_HINT
from decodescope.app.window.main_window import MainWindow
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


def test_a_failure_leaves_the_status_line_when_it_is_closed(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    fail(qtbot, window, engine)
    window.parts.centre.error_banner.close_button.click()
    assert window.parts.status.outcome.text() == ""


def test_a_failure_leaves_the_status_line_when_the_prompt_is_changed(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    fail(qtbot, window, engine)
    window.parts.setup.prompt.set_prompt("Something shorter")
    assert window.parts.status.outcome.text() == ""


def test_an_outcome_stays_when_the_settings_are_changed(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    reported = window.parts.status.outcome.text()
    assert reported
    window.parts.setup.prompt.set_prompt("Something else")
    assert window.parts.status.outcome.text() == reported


def test_a_game_tells_no_end_of_its_text(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    reported = window.parts.status.outcome.text()
    with qtbot.waitSignal(window.parts.guess.questionShown, timeout=WAIT_MS):
        window.parts.guess.start()
    assert window.parts.status.outcome.text() == ""
    window.parts.guess.leave()
    assert window.parts.status.outcome.text() == reported


def test_one_more_setting_is_one(window: MainWindow) -> None:
    panel = window.parts.setup.parameters
    for strategy in window.parts.chosen.strategy.registry:
        window.parts.settings_controller.choose(strategy=strategy)
        hidden = sum(row.parameter.advanced for row in panel.rows.values())
        if hidden and not panel.is_advanced:
            noun = "setting" if hidden == 1 else "settings"
            assert panel.more_button.text().startswith(f"{hidden} more {noun}")
            assert (hidden == 1) == ("settings" not in panel.more_button.text())


def test_the_newest_token_is_not_claimed_of_an_older_one(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    qtbot.waitUntil(lambda: window.parts.inspector.page.heading.text() != "", timeout=WAIT_MS)
    run_shown = window.session.run
    assert run_shown is not None
    qtbot.waitUntil(lambda: f"TOKEN {len(run_shown.tokens)}" in window.parts.inspector.page.heading.text())
    assert "NEWEST" not in window.parts.inspector.page.heading.text()


def test_the_hint_of_the_chat_is_true_in_both_modes() -> None:
    assert "Choose Chat" not in EMPTY_HINT


def test_the_length_of_the_tours_is_the_same_everywhere(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.welcome.show()
    page = window.parts.welcome.page
    assert page is not None
    reported = " ".join(label.text() for label in page.findChildren(type(window.parts.status.outcome).__mro__[1]))
    assert "minute and a half" not in reported
    chooser = TourChooser(*load_tours())
    qtbot.addWidget(chooser)
    assert all(tour.seconds <= 75 for tour in load_tours()[0])
