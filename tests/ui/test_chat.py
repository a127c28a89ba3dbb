"""Chatting in the window: over a script, and once with the real storyteller."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QCheckBox, QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.views.chat.view import ChatView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.events import Notice
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, find, open_window, run

QUESTIONS = ("Tell me a story about a fox.", "What happened next?", "Who helped?", "And then?", "How did it end?")


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine(tokens=["Yes", ",", " it", " did", "."])


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> MainWindow:
    window = open_window(qtbot, config_dir, engine)
    qtbot.mouseClick(window.parts.setup.prompt.mode.button("chat"), Qt.MouseButton.LeftButton)
    return window


def say(qtbot: QtBot, window: MainWindow, text: str) -> None:
    window.parts.setup.prompt.editor.setPlainText(text)
    assert run(qtbot, window).kind != "failed"


def press(qtbot: QtBot, window: MainWindow, name: str) -> None:
    qtbot.mouseClick(find(window, QPushButton, name), Qt.MouseButton.LeftButton)


def test_five_turns_send_whole_conversation(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    assert window.parts.centre.columns[0].current_name == "chat"
    for question in QUESTIONS:
        say(qtbot, window, question)
        assert window.parts.setup.prompt.editor.toPlainText() == ""
    assert [turn.role for turn in window.parts.chat.conversation.turns] == ["user", "assistant"] * 5
    assert {turn.content for turn in window.parts.chat.conversation.turns[1::2]} == {"Yes, it did."}
    assert [len(request.prompt) for request in engine.runs] == [1, 3, 5, 7, 9]
    assert engine.runs[-1].prompt[1]["content"] == "Yes, it did."


def test_ctrl_enter_sends_in_chat_mode_and_text_mode_keeps_prompt(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    window.parts.setup.prompt.editor.setPlainText("Hi")
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.keyClick(window.parts.setup.prompt.editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert len(window.parts.chat.conversation.turns) == 2
    qtbot.mouseClick(window.parts.setup.prompt.mode.button("text"), Qt.MouseButton.LeftButton)
    assert window.parts.centre.columns[0].current_name == "tokens"
    say(qtbot, window, "Once upon")
    assert engine.runs[-1].prompt == "Once upon"
    assert window.parts.setup.prompt.editor.toPlainText() == "Once upon"
    assert len(window.parts.chat.conversation.turns) == 2


def test_run_without_message_is_rejected(window: MainWindow, engine: ScriptedEngine) -> None:
    window.parts.setup.prompt.editor.setPlainText("")
    window.parts.runs.run()
    assert engine.runs == []
    assert "no message" in window.parts.centre.error_banner.accessibleDescription() + " ".join(
        window.parts.requests.problems
    )


def test_regenerate_edit_and_new_chat(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    say(qtbot, window, "Hi")
    say(qtbot, window, "And?")
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        press(qtbot, window, "regenerateButton")
    assert engine.runs[-1].prompt == engine.runs[-2].prompt
    assert engine.runs[-1].seed != engine.runs[-2].seed
    assert len(window.parts.chat.conversation.turns) == 4
    press(qtbot, window, "editTurnButton")
    assert window.parts.setup.prompt.editor.toPlainText() == "And?"
    assert len(window.parts.chat.conversation.turns) == 2
    press(qtbot, window, "newChatButton")
    assert window.parts.chat.conversation.turns == []


def test_a_stopped_answer_is_kept(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(hold=threading.Event())
    window = open_window(qtbot, config_dir, engine)
    window.parts.setup.prompt.set_prompt("Hi", is_chat=True)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and len(window.session.run.tokens) >= 10, timeout=WAIT_MS)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        window.parts.runs.stop()
    assert window.parts.chat.conversation.turns[-1].content.startswith(" fox named Mia.")
    assert not window.parts.chat.conversation.is_open


def test_tokens_of_last_answer_can_be_selected(qtbot: QtBot, window: MainWindow) -> None:
    say(qtbot, window, "Hi")
    view = find(window, ChatView, "chatView")
    place = view.token_rect(1, 3).center()
    qtbot.mouseClick(view.area.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(round(place.x()), round(place.y())))
    assert window.session.run.selected == 3
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert window.session.run.selected == 2


def test_full_context_marks_dropped_turns(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    say(qtbot, window, "one two three four five")
    engine.context = 16
    say(qtbot, window, "a message much longer than before, so that both cannot stay")
    assert len(engine.runs[-1].prompt) == 1
    assert [turn.is_in_context for turn in window.parts.chat.conversation.turns] == [False, False, True, True]


def test_chat_is_restored_at_next_start(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, config_dir: Path
) -> None:
    say(qtbot, window, "Hi")
    cost = window.parts.chat.conversation.turns[1].cost_text
    window.close()
    again = open_window(qtbot, config_dir, engine)
    assert [turn.content for turn in again.parts.chat.conversation.turns] == ["Hi", "Yes, it did."]
    assert again.parts.chat.conversation.turns[1].cost_text == cost
    assert find(again, ChatView, "chatView").isVisible()
    say(qtbot, again, "And?")
    assert [turn["content"] for turn in engine.runs[-1].prompt] == ["Hi", "Yes, it did.", "And?"]
    press(qtbot, again, "newChatButton")
    again.close()
    assert open_window(qtbot, config_dir, engine).parts.chat.conversation.turns == []


def test_unreadable_chat_file_shows_notice(qtbot: QtBot, config_dir: Path) -> None:
    (config_dir / "chat.json").write_text("{", encoding="utf-8")
    window = open_window(qtbot, config_dir)
    assert window.parts.chat.conversation.turns == []
    assert "chat.json.bad-1" in window.parts.centre.notice_banner.accessibleDescription()


def test_unfinished_answer_is_saved_when_window_closes(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(hold=threading.Event())
    window = open_window(qtbot, config_dir, engine)
    window.parts.setup.prompt.set_prompt("Hi", is_chat=True)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and len(window.session.run.tokens) >= 10, timeout=WAIT_MS)
    window.close()
    again = open_window(qtbot, config_dir, engine)
    assert again.parts.chat.conversation.turns[1].content.startswith(" fox named Mia.")


def test_prefix_reuse_can_be_disabled_in_settings(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    say(qtbot, window, "Hi")
    assert engine.runs[-1].prefix_budget == 256 * 2**20
    window.parts.dialogs.open_settings()
    for name in ("reuseChoice", "fallbackChoice"):
        find(window, QCheckBox, name).setChecked(False)
    say(qtbot, window, "And?")
    assert (engine.runs[-1].prefix_budget, engine.runs[-1].memory_fallback) == (0, False)


def test_memory_fallback_notice_is_shown_immediately(window: MainWindow) -> None:
    window.parts.run_feed.on_events(Run(RunRequest("")), [Notice("memory_fallback", "cpu ran out of memory")])
    assert window.parts.centre.notice_banner.isVisible()


def test_reused_tokens_increase_with_every_turn(qtbot: QtBot, config_dir: Path) -> None:
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS):
        window.show()
    window.parts.settings_controller.choose(strategy="greedy")
    window.parts.settings_controller.set_values({"max_new_tokens": 6})
    window.parts.setup.prompt.set_prompt("", is_chat=True)
    for question in QUESTIONS:
        window.parts.setup.prompt.editor.setPlainText(question)
        with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS):
            window.parts.runs.run()
    answers = window.parts.chat.conversation.turns[1::2]
    reused = [turn.reused for turn in answers]
    assert reused[0] == 0
    assert reused == sorted(set(reused))
    for before, after in pairwise(answers):
        assert after.reused >= before.reused + before.computed, "everything before the new turn is reused"
    assert f"{reused[-1]:,} reused" in window.parts.status.number_labels["prefill"].text()
