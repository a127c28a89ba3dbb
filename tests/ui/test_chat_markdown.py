"""Answers of a chat as formatted text: Markdown, folded thinking, and no access to files or the network."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QTextDocument, QTextTable
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from decodescope.app.state.conversation import Conversation, ConversationTurn
from decodescope.app.theme.theme import tab_distance, theme_for
from decodescope.app.views.chat import formatted_answer
from decodescope.app.views.chat.formatted_answer import (
    has_formatting,
    markdown_document,
    plain_text_reason,
    thinking_document,
)
from decodescope.app.views.chat.view import ChatView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.thinking import split_text
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import settle
from tests.ui.test_language_switch import switch
from tests.ui.windows import WAIT_MS, find, open_window, run

RICH = (
    "## Foxes\n\nA **fox** is *quick*:\n\n- red\n- `sly`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n\ty\n```\n"
)
HOSTILE = (
    "<b>bold</b> <img src='file:///etc/hostname'> ![a](file:///etc/hostname) ![r][x] [l](https://example.org) "
    "![\\n](http://127.0.0.1:9/x.png) <style>p{}</style> &lt;img src=x&gt;\n\n[x]: file:///etc/hostname\n\n"
    "<script>1</script>\n\n**end**"
)


@pytest.mark.parametrize(
    "text", ["Yes, it did.", "2 * 3 = 6 and 4 * 5", "a_b_c", "He said: no.\nThen he left.", "#fox"]
)
def test_plain_text_has_no_formatting(text: str) -> None:
    assert not has_formatting(split_text(text))


@pytest.mark.parametrize(
    "text", ["a **b**", "- a\n- b", "# A", "`x`", "1. a", "> a", "[a](b)", "<think>a</think>b", "```\na"]
)
def test_markdown_is_detected(text: str) -> None:
    assert has_formatting(split_text(text))


def test_expensive_markdown_is_not_formatted() -> None:
    assert not has_formatting(split_text("**a** " * 20_000))
    assert not has_formatting(split_text(">" * 500 + " **a**"))


def test_markdown_becomes_a_document(qtbot: QtBot) -> None:
    made = markdown_document(RICH, theme_for("light"), 400)
    text = made.toPlainText()
    assert "**" not in text
    assert "##" not in text
    assert "|" not in text
    assert "x = 1\n\ty" in text or "x = 1" in text
    assert [type(frame) for frame in made.rootFrame().childFrames()] == [QTextTable]
    assert made.textWidth() == 400
    (table,) = made.rootFrame().childFrames()
    first = table.cellAt(0, 0)
    assert (first.lastPosition() - first.firstPosition(), first.firstCursorPosition().block().text()) == (1, "a")


def test_markdown_document_keeps_line_breaks(qtbot: QtBot) -> None:
    lines = markdown_document("Roses are **red**,\nviolets are blue.", theme_for("light"), 400).toPlainText()
    assert "red,\nviolets" in lines.replace("\u2028", "\n")


def test_markdown_document_loads_no_resources_and_no_html(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []

    def load(_document: QTextDocument, _kind: int, address: QUrl) -> object:
        requested.append(address.toString())
        return b""

    monkeypatch.setattr(formatted_answer.OfflineDocument, "loadResource", load)
    made = markdown_document(HOSTILE, theme_for("light"), 300)
    picture = QImage(300, 600, QImage.Format.Format_RGB32)
    from PySide6.QtGui import QPainter

    painter = QPainter(picture)
    made.drawContents(painter)
    painter.end()
    assert requested == []
    text = made.toPlainText()
    for shown in ("<b>bold</b>", "<img src='file:///etc/hostname'>", "<script>1</script>", "<style>", "<img src=x>"):
        assert shown in text
    block = made.begin()
    while block.isValid():
        fragments = block.begin()
        while not fragments.atEnd():
            style = fragments.fragment().charFormat()
            assert not style.isImageFormat()
            assert not style.anchorHref()
            fragments += 1
        block = block.next()


def test_thinking_document_loads_no_files(qtbot: QtBot) -> None:
    made = thinking_document("<b>x</b>", theme_for("dark"), 300)
    assert made.toPlainText() == "<b>x</b>"
    assert not made.resource(QTextDocument.ResourceType.ImageResource.value, QUrl("file:///etc/hostname"))


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine(tokens=["<think>", "I", " see", "</think>", "A", " **", "fox", "**", "."])


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> MainWindow:
    window = open_window(qtbot, config_dir, engine)
    qtbot.mouseClick(window.parts.setup.prompt.mode.button("chat"), Qt.MouseButton.LeftButton)
    window.parts.setup.prompt.editor.setPlainText("**Who** is <b>it</b>?")
    run(qtbot, window)
    settle(window)
    return window


def test_answer_is_formatted_and_thinking_can_be_folded(qtbot: QtBot, window: MainWindow) -> None:
    view = find(window, ChatView, "chatView")
    requested, answer = view.area._bubbles.all
    assert not requested.is_formatted
    assert requested.prompt_document.toPlainText() == "**Who** is <b>it</b>?"
    assert answer.is_formatted
    assert answer.rich.thinking_header == "▸ Thinking · 4 of 9 tokens (44 %)"
    folded = answer.rect.height()
    middle = (answer.thinking_header_rect.center() + view.area._origin).toPoint()
    QTest.mouseClick(view.area.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    assert answer.rich.is_thinking_expanded
    assert answer.rect.height() > folded
    QTest.keyClick(view, Qt.Key.Key_T)
    assert not answer.rich.is_thinking_expanded
    assert answer.rect.height() == folded


def test_formatted_answer_can_be_switched_to_tokens(qtbot: QtBot, window: MainWindow) -> None:
    view = find(window, ChatView, "chatView")
    assert view._tools.formatted.isEnabled()
    before = view.grab().toImage()
    view._tools.formatted.click()
    answer = view.area._bubbles.all[-1]
    assert not answer.is_formatted
    assert view.grab().toImage() != before
    rect = view.token_rect(1, 4)
    QTest.mouseClick(view.area.viewport(), Qt.MouseButton.LeftButton, pos=rect.center().toPoint())
    assert window.session.run is not None
    assert window.session.run.selected == 4
    switch(qtbot, window, "zh_CN")
    assert not find(window, ChatView, "chatView").area.formats_answers
    switch(qtbot, window, "en")


def test_unfinished_answer_is_not_formatted(qtbot: QtBot, window: MainWindow) -> None:
    bubble = find(window, ChatView, "chatView").area._bubbles.all[-1]
    bubble.turn.is_open = True
    assert not bubble.can_be_formatted
    bubble.turn.is_open = False


def test_tab_width_is_same_in_editor_and_chat(qtbot: QtBot, window: MainWindow) -> None:
    editor = window.parts.setup.prompt.editor
    for font, distance in (
        (editor.font(), editor.tabStopDistance()),
        (find(window, ChatView, "chatView").area._bubbles.all[-1].column.flow.font, None),
    ):
        spaces = QFontMetricsF(QFont(font)).horizontalAdvance(" ")
        assert tab_distance(font) == pytest.approx(4 * spaces)
        assert distance is None or distance == pytest.approx(4 * spaces)
    column = find(window, ChatView, "chatView").area._bubbles.all[-1].column
    assert column.flow.tab == pytest.approx(tab_distance(column.flow.font))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("**a**" + "[" * 100_000, "too long"),
        ("**a**" + "[" * 30_000, "too much markup"),
        ("|" + "a|" * 5_000 + "\n|" + "-|" * 5_000, "table"),
        ("|a|b|\n|-|-|\n" + "|c|d|\n" * 1_500, "table"),
        ("**a**\n\n" + "|a\n|-\n" * 900, "table"),
        ("1. a\n" * 5_000, "too many lines"),
        ("`a" * 9_000, "too much markup"),
        ("".join(f"[a{n}]: b\n" for n in range(900)) + "**a**", "too many links"),
        ("**a**\n" + ">" * 500, "nested"),
    ],
)
def test_markup_that_would_freeze_the_window_is_shown_as_text(text: str, reason: str) -> None:
    assert not has_formatting(split_text(text))
    assert reason in plain_text_reason(split_text(text))


def test_large_plain_text_has_no_reason() -> None:
    assert plain_text_reason(split_text("Once upon a time. " * 10_000)) == ""


def test_search_for_markup_takes_time_linear_in_length() -> None:
    start = perf_counter()
    for text in ("[" * 100_000, "[a](" * 25_000, "|" * 100_000, "| " * 50_000 + "x", "`" * 100_000, "*a" * 50_000):
        plain_text_reason(split_text(text))
        has_formatting(split_text(text))
    assert perf_counter() - start < 5, "the quadratic search took fifteen seconds for the first one alone"


def test_answer_shown_as_text_says_so_below(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.setup.prompt.switch_mode(True)
    window.parts.centre.show_view("chat")
    chat = Conversation()
    chat.append(ConversationTurn("user", "Hi"))
    chat.append(ConversationTurn("assistant", "|" + "a|" * 900 + "\n|" + "-|" * 900))
    window.parts.chat.add_chat(chat)
    bubble = find(window, ChatView, "chatView").area._bubbles.all[-1]
    assert not bubble.is_formatted
    assert bubble.foot_text == "shown as text: its table is too large to be formatted"


def test_long_chat_lays_out_what_is_seen_first_and_stays_at_its_end(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.setup.prompt.switch_mode(True)
    window.parts.centre.show_view("chat")
    chat = Conversation()
    for number in range(150):
        chat.append(ConversationTurn("user", f"Question {number}"))
        chat.append(ConversationTurn("assistant", f"**Answer** {number}\n\n- a\n- b\n\n```\ncode\n```\n"))
    window.parts.chat.add_chat(chat)
    area = find(window, ChatView, "chatView").area
    bubbles, bar = area._bubbles.all, area.verticalScrollBar()
    assert bubbles[0].is_pending
    assert not bubbles[-1].is_pending
    assert bar.value() == bar.maximum()
    qtbot.waitUntil(lambda: not any(bubble.is_pending for bubble in area._bubbles.all), timeout=WAIT_MS)
    assert bar.value() == bar.maximum()
    bar.setValue(bar.maximum() // 2)
    first = area._bubbles.visible(bar.value(), bar.value() + area.viewport().height())[0]
    place = first.rect.top() - bar.value()
    area.arrange()
    assert abs(first.rect.top() - bar.value() - place) <= 1
