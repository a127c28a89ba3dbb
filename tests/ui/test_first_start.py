"""Choices at the first start of the program, by the language of the system."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.storage.examples import STORY_MODELS, first_example
from decodescope.app.window import assembly
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import open_window


def start(qtbot: QtBot, folder: Path) -> tuple[MainWindow, str, str]:
    window = open_window(qtbot, folder)
    return window, window.parts.chosen.model.name, window.parts.setup.prompt.editor.toPlainText()


@pytest.mark.parametrize("language", ["zh_CN", "en"])
def test_first_start_selects_the_story_model_and_prompt_of_the_systems_language(
    qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr(assembly, "system_language", lambda: language)
    _window, model, prompt = start(qtbot, config_dir)
    assert model == STORY_MODELS.get(language, "storyteller")
    example = first_example(language)
    assert prompt == (example.text if example is not None else "Once upon a time, there was a little")
    assert prompt.isascii() == (language == "en")


def test_later_choice_is_kept_at_the_next_starts(
    qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "system_language", lambda: "zh_CN")
    window, _model, _prompt = start(qtbot, config_dir)
    window.parts.chosen.model.choose("storyteller")
    window.parts.setup.prompt.set_prompt("A fox")
    window.close()
    assert start(qtbot, config_dir)[1:] == ("storyteller", "A fox")


def test_settings_of_an_earlier_start_are_not_changed(
    qtbot: QtBot, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "system_language", lambda: "en")
    start(qtbot, config_dir)[0].close()
    monkeypatch.setattr(assembly, "system_language", lambda: "zh_CN")
    assert start(qtbot, config_dir)[1:] == ("storyteller", "Once upon a time, there was a little")
