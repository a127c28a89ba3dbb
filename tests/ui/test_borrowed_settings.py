"""Tours, examples, the guessing game and demo runs change settings temporarily and restore all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.control.borrowed_settings import TOUR
from decodescope.app.features.tours.state import find_tour, load_tours
from decodescope.app.session.engine import CoreEngine
from decodescope.app.storage import examples
from decodescope.app.window.main_window import MainWindow
from decodescope.core import strategies
from tests.ui.test_tours import shortened
from tests.ui.windows import WAIT_MS, open_window, run

TOURS = [tour.name for tour in load_tours()[0]]
EXAMPLES = {example.id: example for example in examples.load_examples()}


@pytest.fixture(scope="module")
def core_engine() -> CoreEngine:
    """One for all windows: the models are loaded once."""
    return CoreEngine()


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    """A window with settings of its own, none of which is a default."""
    return prepare(open_window(qtbot, config_dir))


def prepare(window: MainWindow) -> MainWindow:
    parts = window.parts
    parts.settings_controller.choose("storyteller", "greedy")
    parts.settings_controller.set_values({"max_new_tokens": 9})
    parts.settings_controller.choose("storyteller", "sampling", "quantized", ["storyteller-draft-b"])
    parts.settings_controller.set_values({"temperature": 0.65, "top_k": 7, "max_new_tokens": 6})
    parts.chosen.cache.parameters.set_values({"nbits": 1})
    parts.toolbar.seed.spin.setValue(77)
    parts.toolbar.seed.lock_button.setChecked(True)
    parts.setup.prompt.set_prompt("My own words,\n\tand more")
    parts.centre.show_view("memory")
    return window


def settings(window: MainWindow) -> dict[str, Any]:
    """Return all visible settings, and the values stored for another strategy."""
    parts = window.parts
    found = {
        "model": parts.toolbar.model.currentData(),
        "drafts": parts.toolbar.draft.chosen,
        "strategy": parts.toolbar.strategy.currentData(),
        "values": parts.setup.parameters.values(),
        "cache": parts.toolbar.cache.currentData(),
        "cache values": parts.setup.cache_parameters.values(),
        "seed": (parts.toolbar.seed.spin.value(), parts.toolbar.seed.is_locked),
        "prompt": (parts.setup.prompt.editor.toPlainText(), parts.setup.prompt.is_chat),
        "media": parts.media.paths,
        "view": parts.centre.columns[0].current_name,
        "groups": parts.setup.parameters.open_groups,
    }
    strategy = found["strategy"]
    parts.toolbar.strategy.select_data("contrastive")
    found["values of another strategy"] = parts.setup.parameters.values()
    parts.toolbar.strategy.select_data(strategy)
    return found


def saved(window: MainWindow) -> dict[str, Any]:
    """Return the contents of the settings file."""
    stored = json.loads(window.parts.store.path.read_text(encoding="utf-8"))
    return {**stored["choices"], "view": stored["layout"]["view"]}


@pytest.mark.every(5)
@pytest.mark.parametrize("name", TOURS)
def test_finished_tour_restores_settings_and_run(
    qtbot: QtBot, config_dir: Path, core_engine: CoreEngine, name: str
) -> None:
    window = prepare(open_window(qtbot, config_dir, core_engine))  # type: ignore[arg-type]
    run(qtbot, window)
    shown, before, player = window.session.run, settings(window), window.parts.tours.player
    tour = shortened(find_tour(name), 8)
    with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
        player.play(tour)
    for _ in tour.steps[1:]:
        with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
            player.next()
    during = settings(window)
    assert during["prompt"] != before["prompt"]
    window.parts.settings_controller.store_settings()
    assert window.parts.settings.choices.prompt == before["prompt"][0]
    assert window.parts.settings.choices.cache_values["quantized"]["nbits"] == 1
    player.next()  # the last step is finished
    assert not window.parts.tours.is_on
    assert settings(window) == before
    assert window.session.run is shown


@pytest.mark.parametrize("leave", ["leave", "close", "crash"])
def test_tour_left_halfway_restores_settings(
    qtbot: QtBot, config_dir: Path, core_engine: CoreEngine, leave: str
) -> None:
    window = prepare(open_window(qtbot, config_dir, core_engine))  # type: ignore[arg-type]
    before, player = settings(window), window.parts.tours.player
    window.parts.settings_controller.store_settings()
    window.parts.settings_saver.save_settings()
    with qtbot.waitSignal(window.session.runStarted, timeout=WAIT_MS):
        player.play(find_tour("rounding"))
    if leave == "leave":
        with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
            window.parts.tours.leave()  # its run is under way and is stopped
        assert settings(window) == before
        return
    if leave == "close":
        window.close()
    else:  # what a timer writes now is all that a killed program leaves
        window.parts.settings_controller.store_settings()
        window.parts.settings_saver.save_settings()
    stored = saved(window)
    assert stored["prompt"] == before["prompt"][0]
    assert (stored["strategy"], stored["cache"], stored["model"]) == ("sampling", "quantized", "storyteller")
    assert stored["values"]["sampling"] == {"temperature": 0.65, "top_k": 7, "max_new_tokens": 6}
    assert stored["cache_values"]["quantized"] == {"nbits": 1}
    assert (stored["seed"], stored["view"], stored["drafts"]) == (77, "memory" if leave == "close" else stored["view"],
                                                           ["storyteller-draft-b"])  # fmt: skip
    window.session.stop()


def test_second_tour_restores_settings_from_before_first(
    qtbot: QtBot, config_dir: Path, core_engine: CoreEngine
) -> None:
    window = prepare(open_window(qtbot, config_dir, core_engine))  # type: ignore[arg-type]
    before, player = settings(window), window.parts.tours.player
    for name in ("likeliest", "rounding"):
        with qtbot.waitSignal(player.stepShown, timeout=WAIT_MS):
            player.play(shortened(find_tour(name), 8))
    player.leave()
    assert settings(window) == before


@pytest.mark.every(5)
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_applies_all_settings_and_restores_user_settings(window: MainWindow, name: str) -> None:
    before, example = settings(window), EXAMPLES[name]
    window.parts.setup.prompt.exampleChosen.emit(example)
    during = settings(window)
    assert (during["model"], during["strategy"], during["cache"]) == (example.model, example.strategy, "dynamic")
    defaults = window.parts.chosen.strategy.strategy.parameters
    own = {p.name: p.default for p in defaults if p.default is not None} | dict(example.params)
    if own.get("do_sample") is False:
        own = {name: value for name, value in own.items() if name not in strategies.drawing()}
    assert during["values"] == own
    bar = window.parts.setup.example_bar
    assert bar.isVisible()
    assert example.title in bar.title.text()
    window.parts.settings_controller.store_settings()
    assert window.parts.settings.choices.prompt == before["prompt"][0]
    QTest.mouseClick(bar.back, Qt.MouseButton.LeftButton)
    assert settings(window) == before
    assert not bar.isVisible()


@pytest.mark.slow
def test_example_text_is_independent_of_earlier_settings(
    qtbot: QtBot, config_dir: Path, core_engine: CoreEngine
) -> None:
    """Regression test: after the last tour the cache stayed at one bit."""
    texts = []
    for number in range(2):
        window = open_window(qtbot, config_dir / str(number), core_engine)  # type: ignore[arg-type]
        if number:
            prepare(window)
        window.parts.setup.prompt.exampleChosen.emit(EXAMPLES["story"])
        run(qtbot, window)
        assert window.session.run is not None
        texts.append(window.session.run.text)
        window.close()
    assert texts[0] == texts[1]


def test_second_example_restores_user_settings(window: MainWindow) -> None:
    before = settings(window)
    for name in ("beam-search", "question", "story"):
        window.parts.setup.prompt.exampleChosen.emit(EXAMPLES[name])
    window.parts.setup.example_bar.back.click()
    assert settings(window) == before


def test_edited_example_is_saved(window: MainWindow) -> None:
    window.parts.setup.prompt.exampleChosen.emit(EXAMPLES["story"])
    window.parts.settings_controller.update_values({"temperature": 1.1})
    window.close()
    stored = saved(window)
    assert stored["prompt"] == EXAMPLES["story"].prompt
    assert stored["values"]["sampling"]["temperature"] == 1.1


def test_unedited_example_is_not_saved(window: MainWindow) -> None:
    before = settings(window)
    window.parts.setup.prompt.exampleChosen.emit(EXAMPLES["beam-search"])
    window.close()
    stored = saved(window)
    assert (stored["prompt"], stored["strategy"], stored["view"]) == (before["prompt"][0], "sampling", "memory")


def test_a_text_example_keeps_the_conversation(qtbot: QtBot, window: MainWindow) -> None:
    window.parts.setup.prompt.set_prompt("Hello", is_chat=True)
    run(qtbot, window)
    turns = list(window.parts.chat.conversation.turns)
    assert turns
    window.parts.setup.prompt.exampleChosen.emit(EXAMPLES["story"])
    assert list(window.parts.chat.conversation.turns) == turns


def _leave_guess(window: MainWindow) -> None:
    window.parts.guess.leave()


def _run_again(window: MainWindow) -> None:
    window.parts.runs.run()


@pytest.mark.parametrize("end", [_leave_guess, _run_again])
def test_guess_first_restores_settings(qtbot: QtBot, window: MainWindow, end: Callable[[MainWindow], None]) -> None:
    window.parts.settings_controller.set_values({"max_new_tokens": 40})
    run(qtbot, window)
    before, whole = settings(window), window.session.run
    with qtbot.waitSignal(window.parts.guess.questionShown, timeout=WAIT_MS):
        window.parts.guess.start()
    assert window.parts.centre.columns[0].current_name == "tokens"
    end(window)
    assert settings(window) == before
    if end is _leave_guess:
        assert window.session.run is whole


@pytest.mark.parametrize("name", ["tree", "speculation", "tokens", "memory"])
def test_demo_run_of_empty_view_restores_settings(qtbot: QtBot, window: MainWindow, name: str) -> None:
    window.parts.centre.show_view(name)
    before = settings(window)
    button = next(b for b in window.parts.centre.findChildren(QPushButton, "fillButton") if b.isVisible())
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert settings(window) == before


def test_caption_of_an_example_is_hidden_while_a_tour_uses_the_settings(window: MainWindow) -> None:
    parts, example = window.parts, EXAMPLES["story"]
    parts.setup.prompt.exampleChosen.emit(example)
    assert example.about in parts.setup.help.text()
    parts.borrowed.borrow(TOUR)
    assert not parts.setup.example_bar.isVisible()
    assert example.about not in parts.setup.help.text()
    parts.borrowed.give_back(TOUR)
    assert parts.setup.example_bar.isVisible()
    assert example.about in parts.setup.help.text()
    parts.settings_controller.leave_example()
    assert example.about not in parts.setup.help.text()
