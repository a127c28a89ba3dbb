"""Texts of the window agree with each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from decodescope import resources
from decodescope.app.features.tours.panel.tour_chooser import TourChooser
from decodescope.app.features.tours.state import load_tours
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.chat.area import EMPTY_HINT
from decodescope.app.window.main_window import MainWindow
from decodescope.core import strategies
from decodescope.core.errors import PromptTooLongError
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, run


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
    qtbot.waitUntil(lambda: f"TOKEN {(run_shown.selected or 0) + 1}" in window.parts.inspector.page.heading.text())
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


BRIGHTNESS = re.compile(
    r"\b(dark|darker|pale|bright|brightest|light|deep)[ ,-]+(\w+[ ,]+){0,2}"
    r"(underline|line|box|boxe|cell|node|bar|colour|orange|blue|green|grey|token)s?\b"
    r"|\b(underline|line|box|boxe|node|bar)s?\b[^.]{0,40}\b(dark|pale|bright)\b",
    re.IGNORECASE,
)
"""Words for brightness about a part of a picture; they are true in one of the two themes only."""
CHINESE_BRIGHTNESS = re.compile(
    r"[又最]?[深暗亮浅](?![度入])的?[^，。]{0,4}(下划线|线|方框|节点|橙|蓝|绿)|变[暗亮深浅]"
)


def described_pictures() -> Iterator[tuple[str, str]]:
    """Every sentence that may describe a picture: of tours, examples, the glossary, the guide and the tutorials."""
    root = resources.path()
    for tour in load_tours()[0]:
        for number, step in enumerate(tour.steps):
            yield f"tour {tour.name} {number}", f"{step.text} {step.otherwise} {step.notes}"
    yield from (
        (f"example {one['id']}", one.get("about", "")) for one in json.loads((root / "examples.json").read_text())
    )
    for path in sorted((root / "glossary").glob("*.toml")):
        yield path.name, path.read_text(encoding="utf-8")
    docs = root.parent / "docs"
    for path in sorted([*(docs / "guide").rglob("*.md"), *(docs / "tutorials").rglob("*.md")]):
        yield str(path.relative_to(docs)), path.read_text(encoding="utf-8")


def test_sentences_about_pictures_name_no_brightness() -> None:
    found = [
        (name, match.group(0))
        for name, text in described_pictures()
        for match in (*BRIGHTNESS.finditer(text), *CHINESE_BRIGHTNESS.finditer(text))
        if "theme" not in text[match.start() - 8 : match.end() + 12]
    ]
    assert found == []


@pytest.mark.parametrize("name", ["light", "dark"])
def test_colours_that_texts_name_are_those_of_both_themes(name: str) -> None:
    """Blue: accepted, kept and certain; green: finished and bonus; orange: corrections and uncertain tokens."""
    theme = theme_for(name)
    hues = {"blue": (190, 230), "green": (145, 175), "orange": (10, 45)}
    named = [("kept", "blue"), ("finished", "green"), ("refused", "orange"), ("best", "orange")]
    colours = [(theme.color(colour), hue) for colour, hue in named]
    colours += [(theme.ramp(0.0), "orange"), (theme.ramp(1.0), "blue")]
    for colour, hue in colours:
        low, high = hues[hue]
        assert low <= colour.hslHue() <= high, (colour.name(), hue)
