"""Words in the window: chips, their values, the tokens found for them, and what a run gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.control.word_spellings import WordSpellingsQuery
from decodescope.app.panels.words_editor import WordsEditor
from decodescope.app.session.local_models import LocalModels
from decodescope.app.state import setting_values
from decodescope.app.state.worker_messages import LoadRequest
from decodescope.core.strategies import registry
from tests.ui.fake_engine import ScriptedEngine

BANS, BIAS = (registry["greedy"].parameter(name) for name in ("banned_phrases", "word_bias"))


def chips(editor: WordsEditor) -> list[QPushButton]:
    return [editor.chips.flow.itemAt(n).widget() for n in range(editor.chips.flow.count())]  # type: ignore[misc]


def test_typed_words_become_chips_and_a_click_takes_one_back(qtbot: QtBot) -> None:
    editor = WordsEditor(BIAS)
    qtbot.addWidget(editor)
    assert not editor.add_button.isEnabled()
    editor.word.setText("cat")
    editor.value.setValue(-4)
    with qtbot.waitSignal(editor.edited):
        QTest.keyClick(editor.word, Qt.Key.Key_Return)
    editor.word.setText(" red fox")
    editor.value.setValue(2.5)
    editor.add_button.click()
    assert editor.plain_value() == [["cat", -4], [" red fox", 2.5]]
    assert [chip.text() for chip in chips(editor)] == ["cat −4  ×", "␣red fox +2.5  ×"]
    chips(editor)[0].click()
    assert editor.plain_value() == [[" red fox", 2.5]]
    assert (editor.word.text(), editor.value.value()) == ("cat", -4)  # to be corrected
    editor.word.setText(" red fox")
    QTest.keyClick(editor.word, Qt.Key.Key_Return)
    assert editor.plain_value() == [[" red fox", -4]]


def test_words_to_avoid_have_no_values(qtbot: QtBot) -> None:
    editor = WordsEditor(BANS)
    qtbot.addWidget(editor)
    editor.set_plain_value(["cat"])
    assert editor.value.isHidden()
    assert editor.plain_value() == ["cat"]
    editor.show_spellings({"cat": [["cat"], [" c", "at"]], "dog": [["dog"]]})
    assert editor.found.text() == "cat: cat,  ␣c | at"
    editor.set_plain_value(None)
    assert editor.plain_value() is None
    assert editor.found.isHidden()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cat: 3\ndog:-1.5", [["cat", 3], ["dog", -1.5]]),
        ('[["a:b", 2]]', [["a:b", 2]]),
        ("12:30: 4", [["12:30", 4]]),
        ("", None),
    ],
)
def test_command_line_reads_words_with_values(text: str, value: object) -> None:
    assert setting_values.parse(BIAS, text) == value
    assert setting_values.invalid_reason(BIAS, value) == ""


@pytest.mark.parametrize("text", ["cat", "cat: many", "[[1, 2]]", ": 3", "cat: inf"])
def test_command_line_refuses_other_values(text: str) -> None:
    with pytest.raises(setting_values.InvalidValueError):
        setting_values.parse(BIAS, text)


def test_window_runs_with_the_words_and_asks_for_their_tokens(qtbot: QtBot, tmp_path: Path) -> None:
    window = build_window(tmp_path / "settings", ScriptedEngine())
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: window.session.model is not None)
    panel = window.parts.setup.parameters
    editor = panel.rows["word_bias"].editor
    assert isinstance(editor, WordsEditor)
    requested = []
    window.session.request = requested.append  # type: ignore[method-assign]
    editor.setValue([["cat", 3]])
    assert window.parts.requests.current_request().settings["word_bias"] == [["cat", 3]]
    qtbot.waitUntil(lambda: any(isinstance(one, WordSpellingsQuery) for one in requested))
    query = next(one for one in requested if isinstance(one, WordSpellingsQuery))
    assert (query.words, query.any_case, query.setting) == (("cat",), False, "word_bias")
    window.close()


def test_spellings_are_found_by_the_loaded_model() -> None:
    models = LocalModels()
    query = WordSpellingsQuery("storyteller", ("fox",), True, "word_bias")
    assert query.run(models, lambda _part: None) == {}
    models.load(LoadRequest("storyteller"))
    found = query.run(models, lambda _part: None)
    assert {"".join(tokens) for tokens in found["fox"]} >= {"fox", " fox", "Fox", " FOX"}
    assert found["fox"] == core.word_spelling_texts(core.load("storyteller"), "fox", True)
