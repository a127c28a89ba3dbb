"""Another kind of model: what happens to the prompt, the strategy and the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import open_window

TEXT = "Once upon a time, there was a little fox"


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = open_window(qtbot, config_dir)
    window.parts.settings_controller.choose("storyteller", "sampling")
    window.parts.setup.prompt.set_prompt(TEXT)
    return window


def select(window: MainWindow, model: str) -> None:
    window.parts.toolbar.model.choose(model)
    QApplication.processEvents()


def notice(window: MainWindow) -> str:
    shown = window.parts.messages.notice
    return shown[1] if shown is not None else ""


def text(window: MainWindow) -> str:
    return window.parts.setup.prompt.editor.toPlainText()


@pytest.mark.parametrize("model", ["listener", "describer"])
def test_text_prompt_and_sampling_are_put_aside_for_media_and_come_back(window: MainWindow, model: str) -> None:
    parts = window.parts
    select(window, model)
    assert text(window) == ""
    assert parts.chosen.strategy.name == "greedy"
    assert "The text prompt was put aside" in notice(window)
    assert "Greedy was selected" in notice(window)
    select(window, "storyteller-window")
    assert text(window) == TEXT
    assert parts.chosen.strategy.name == "sampling"


def test_undo_restores_prompt_and_strategy(window: MainWindow) -> None:
    select(window, "describer")
    button = window.parts.centre.notice_banner.button("undo_task")
    assert button is not None
    button.click()
    assert text(window) == TEXT
    assert window.parts.chosen.strategy.name == "sampling"


def test_what_was_changed_meanwhile_is_kept(window: MainWindow) -> None:
    select(window, "describer")
    window.parts.setup.prompt.set_prompt("What is this?")
    window.parts.settings_controller.choose(strategy="beam_search")
    select(window, "storyteller")
    assert text(window) == "What is this?"
    assert window.parts.chosen.strategy.name == "beam_search"


def test_summarizer_keeps_its_text_but_does_not_sample(window: MainWindow) -> None:
    select(window, "summarizer")
    assert text(window) == TEXT
    assert window.parts.chosen.strategy.name == "greedy"
    assert "put aside" not in notice(window)


def test_same_kind_of_model_changes_nothing(window: MainWindow) -> None:
    select(window, "storyteller-mamba")
    assert (text(window), window.parts.chosen.strategy.name, notice(window)) == (TEXT, "sampling", "")


def test_example_of_another_kind_of_model_gives_no_notice(window: MainWindow) -> None:
    parts = window.parts
    example = next(example for example in parts.setup.prompt.examples if example.model == "listener")
    parts.settings_controller.apply_example(example)
    QApplication.processEvents()
    assert notice(window) == ""
    parts.settings_controller.leave_example()
    assert text(window) == TEXT
    assert parts.chosen.strategy.name == "sampling"


@pytest.mark.parametrize("model", ["listener", "describer", "summarizer", "storyteller"])
def test_chips_show_examples_of_the_selected_kind_of_model(window: MainWindow, model: str) -> None:
    select(window, model)
    prompt = window.parts.setup.prompt
    by_title = {example.title: example for example in prompt.examples}
    chips = [by_title[chip.text()] for chip in prompt.chips[:-1]]
    assert chips
    assert {example.model for example in chips} == {model}
