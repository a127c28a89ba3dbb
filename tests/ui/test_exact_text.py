"""Typed, pasted and set texts of an editor reach the model character by character."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtWidgets import QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from decodescope.app.panels.editors import make_editor
from decodescope.app.panels.grammar_editor import GrammarEditor
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core import strategies

HOSTILE = {
    "no-break space": "Bonjour\u00a0!",
    "narrow no-break space": "1\u202f000",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b\nc",
    "carriage return": "a\rb",
    "line end of Windows": "a\r\nb\r\n",
    "tab": "\ta\t",
    "next line": "a\x85b",
    "vertical tab and form feed": "a\x0bb\x0cc",
    "controls": "a\x01\x02\x1b[31m\x7f",
    "zero width": "a\u200b\u200c\u200d\ufeff\u2060b",
    "directions": "\u202eabc\u202c \u05d0\u05d1 \u0627\u0644",
    "soft hyphen": "co\u00adop",
    "object replacement": "a\ufffcb",
    "frame marks": "a\ufdd0b\ufdd1c",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 é e\u0301",
    "spaces at both ends": "  a \n\n b  \n",
    "only line feeds": "\n\n",
    "ideographic space": "\u3000中文\u3000",
}
Fill = Callable[[Any, str], None]


def by_pasting(editor: Any, text: str) -> None:
    data = QMimeData()
    data.setText(text)
    editor.insertFromMimeData(data)


def by_clipboard(editor: Any, text: str) -> None:
    """Copied from one editor, pasted into another."""
    other = ExactTextEdit()
    other.setPlainText(text)
    other.selectAll()
    other.copy()
    editor.paste()


WAYS: dict[str, Fill] = {
    "set": lambda editor, text: editor.setPlainText(text),
    "inserted": lambda editor, text: editor.insertPlainText(text),
    "replaced": lambda editor, text: editor.replace_text(text),
    "pasted": by_pasting,
    "copied and pasted": by_clipboard,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HOSTILE)
def test_prompt_editor_keeps_text_exactly(qtbot: QtBot, way: str, name: str) -> None:
    panel = PromptPanel([])
    qtbot.addWidget(panel)
    WAYS[way](panel.editor, HOSTILE[name])
    assert panel.prompt == HOSTILE[name]


@pytest.mark.parametrize("name", HOSTILE)
def test_set_prompt_keeps_text_and_can_be_undone(qtbot: QtBot, name: str) -> None:
    panel = PromptPanel([])
    qtbot.addWidget(panel)
    panel.set_prompt("before")
    panel.set_prompt(HOSTILE[name])
    assert panel.prompt == HOSTILE[name]
    panel.editor.undo()
    assert panel.prompt == "before"


@pytest.mark.parametrize("name", [name for name, text in HOSTILE.items() if text.strip() and "\n" not in text.strip()])
def test_chat_turn_keeps_text_exactly(qtbot: QtBot, name: str) -> None:
    """Use one line: line breaks and spaces at its ends are the border of a turn."""
    text = HOSTILE[name].strip()
    panel = PromptPanel([])
    qtbot.addWidget(panel)
    panel.set_prompt(f"user: {text}", is_chat=True)
    assert panel.prompt[0]["content"] == text  # type: ignore[index]


@pytest.mark.parametrize("name", HOSTILE)
def test_grammar_editor_keeps_text_exactly(qtbot: QtBot, name: str) -> None:
    parameter = strategies.registry["greedy"].parameter("grammar")
    editor = GrammarEditor(parameter)
    qtbot.addWidget(editor)
    field = editor._ensure_text()
    field.setPlainText(HOSTILE[name])
    assert field.toPlainText() == HOSTILE[name]


@pytest.mark.parametrize("name", HOSTILE)
def test_stop_strings_editor_keeps_text_exactly(qtbot: QtBot, name: str) -> None:
    editor: Any = make_editor(strategies.registry["greedy"].parameter("stop_strings"))
    qtbot.addWidget(editor)
    editor.setValue([HOSTILE[name], " x"])
    assert editor.value() == [HOSTILE[name], " x"]
    editor.setValue(HOSTILE[name])
    assert editor.value() == [HOSTILE[name]]


@pytest.mark.parametrize("name", HOSTILE)
def test_line_edit_keeps_text_exactly(qtbot: QtBot, name: str) -> None:
    """The text field of a branch is a line edit."""
    field = QLineEdit()
    qtbot.addWidget(field)
    field.setText(HOSTILE[name])
    assert field.text() == HOSTILE[name]


def test_document_positions_match_utf16_positions(qtbot: QtBot) -> None:
    editor = ExactTextEdit()
    qtbot.addWidget(editor)
    text = "".join(HOSTILE.values())
    editor.setPlainText(text)
    assert editor.document().characterCount() - 1 == len(text.encode("utf-16-le")) // 2
    assert QApplication.instance() is not None
