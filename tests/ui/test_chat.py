"""Chatting in the window: over a script, and once with the real storyteller."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QCheckBox, QComboBox, QMenu
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.control.chat_fit import ChatFit, ChatFitQuery
from decodescope.app.session.queries.base import Query, Report
from decodescope.app.state import run_history
from decodescope.app.state.conversation import CONTINUE
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.chat.formatted_answer import markdown_document, shown_text
from decodescope.app.views.chat.turn_tools import made_with_rows
from decodescope.app.views.chat.view import ChatView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.errors import DecodescopeError, PromptTooLongError
from decodescope.core.events import Notice
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, find, finish, open_window, run

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
    qtbot.mouseClick(find(window, QAbstractButton, name), Qt.MouseButton.LeftButton)


def press_and_wait(qtbot: QtBot, window: MainWindow, name: str) -> None:
    finish(qtbot, window, lambda: press(qtbot, window, name))


def chat_view(window: MainWindow) -> ChatView:
    return find(window, ChatView, "chatView")


def contents(window: MainWindow) -> list[str]:
    return [turn.content for turn in window.parts.chat.conversation.turns]


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


def test_regenerate_writes_answer_beside_old_one(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    say(qtbot, window, "Hi")
    say(qtbot, window, "And?")
    engine.tokens = ["No", "."]
    press_and_wait(qtbot, window, "regenerateButton")
    assert engine.runs[-1].prompt == engine.runs[-2].prompt
    assert engine.runs[-1].seed != engine.runs[-2].seed
    assert contents(window) == ["Hi", "Yes, it did.", "And?", "No."]
    bar = chat_view(window).area.bar
    assert bar.number.text() == "2/2"
    press(qtbot, window, "previousAnswer")
    assert (contents(window)[-1], bar.number.text()) == ("Yes, it did.", "1/2")
    assert window.session.run.text == "Yes, it did.", "the other views show the run that wrote the answer"
    assert not bar.previous.isEnabled()
    press(qtbot, window, "nextAnswer")
    assert contents(window)[-1] == "No."


def test_message_longer_than_the_context_returns_to_the_input(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    say(qtbot, window, "Hi")
    engine.fail_at, engine.error = 0, PromptTooLongError(100, 64)
    editor = window.parts.setup.prompt.editor
    editor.setPlainText("far too long")
    assert run(qtbot, window).kind == "failed"
    assert contents(window) == ["Hi", "Yes, it did."]
    assert editor.toPlainText() == "far too long"
    engine.fail_at = None
    say(qtbot, window, "short")
    assert [turn["content"] for turn in engine.runs[-1].prompt] == ["Hi", "Yes, it did.", "short"]


def test_message_whose_answer_fails_otherwise_stays_for_another_try(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    engine.fail_at, engine.error = 0, DecodescopeError("It failed.")
    window.parts.setup.prompt.editor.setPlainText("Hi")
    assert run(qtbot, window).kind == "failed"
    assert (contents(window), window.parts.setup.prompt.editor.toPlainText()) == (["Hi"], "")


@pytest.mark.parametrize("by_key", [False, True])
def test_focus_returns_to_the_message_when_an_answer_is_stopped_by_the_button(
    qtbot: QtBot, config_dir: Path, by_key: bool
) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine(hold=threading.Event()))
    editor = window.parts.setup.prompt.editor
    window.parts.setup.prompt.set_prompt("Hi", is_chat=True)
    editor.setFocus()
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and len(window.session.run.tokens) >= 3, timeout=WAIT_MS)
    send = window.parts.chat.composer.send
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        if by_key:
            send.setFocus()
            qtbot.keyClick(send, Qt.Key.Key_Space)
        else:
            qtbot.mouseClick(send, Qt.MouseButton.LeftButton)
    assert QApplication.focusWidget() is editor


def test_list_that_covers_the_chat_closes_when_a_message_is_sent_or_a_chat_begins(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    say(qtbot, window, "Hi")
    window.resize(900, 600)
    view = chat_view(window)
    press(qtbot, window, "chatsButton")
    assert (view.chats.isVisible(), view.area.isVisible()) == (True, False)
    say(qtbot, window, "And?")
    assert (view.chats.isVisible(), view.area.isVisible()) == (False, True)
    press(qtbot, window, "chatsButton")
    view.chats.newRequested.emit()
    assert view.area.isVisible()
    assert contents(window) == []
    say(qtbot, window, "Hi")
    press(qtbot, window, "chatsButton")
    assert view.chats.search.mapTo(view, QPoint()).x() == view._footer.contentsMargins().left()
    press(qtbot, window, "newChatButton")
    assert view.area.isVisible()


def test_answer_of_earlier_turn_regenerates_without_later_turns(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    for question in ("Hi", "And?"):
        say(qtbot, window, question)
    view = chat_view(window)
    view.area.choose_turn(-2)
    engine.tokens = ["No", "."]
    press_and_wait(qtbot, window, "regenerateButton")
    assert contents(window) == ["Hi", "No."]
    press(qtbot, window, "previousAnswer")
    assert contents(window) == ["Hi", "Yes, it did.", "And?", "Yes, it did."], "what followed the old answer is kept"


def test_edited_answer_continues_in_two_clicks_with_its_tokens(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    say(qtbot, window, "Hi")
    ids = [token.id for token in window.session.run.tokens]
    engine.tokens = [" again", "."]
    press(qtbot, window, "editTurnButton")
    editor = chat_view(window).area.editor
    assert editor.text.toPlainText() == "Yes, it did."
    editor.text.setPlainText("Yes, it was")
    press_and_wait(qtbot, window, "continueButton")
    assert engine.runs[-1].beginning == (*ids[:3], " was")
    assert [turn["content"] for turn in engine.runs[-1].prompt] == ["Hi"]
    assert chat_view(window).area.bar.number.text() == "2/2"
    assert chat_view(window).area.editor is None


def test_edited_answer_is_saved_as_version_without_run(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    say(qtbot, window, "Hi")
    press(qtbot, window, "editTurnButton")
    chat_view(window).area.editor.text.setPlainText("Yes, my own words.")
    press(qtbot, window, "saveTurnButton")
    assert contents(window) == ["Hi", "Yes, my own words."]
    assert len(engine.runs) == 1
    say(qtbot, window, "And?")
    assert engine.runs[-1].prompt[1]["content"] == "Yes, my own words."


def test_edited_message_is_sent_again_beside_old_one(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    say(qtbot, window, "Hi")
    view = chat_view(window)
    view.area.choose_turn(-1)
    press(qtbot, window, "editTurnButton")
    view.area.editor.text.setPlainText("Hello")
    press_and_wait(qtbot, window, "continueButton")
    assert contents(window) == ["Hello", "Yes, it did."]
    assert [turn["content"] for turn in engine.runs[-1].prompt] == ["Hello"]
    window.parts.chat.show_sibling(window.parts.chat.conversation.turns[0], -1)
    assert contents(window) == ["Hi", "Yes, it did."]


def test_menu_of_token_continues_after_it_and_replaces_it(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    say(qtbot, window, "Hi")
    view, turn, menu = chat_view(window), window.parts.chat.conversation.turns[1], QMenu()
    run = window.session.run
    view.fill_turn_menu(menu, turn, 1)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        menu.actions()[0].trigger()
    assert engine.runs[-1].beginning == tuple(token.id for token in run.tokens[:2])
    other = next(item.id for item in run.tokens[2].alternatives if item.id != run.tokens[2].id)
    window.parts.chat.show_sibling(window.parts.chat.conversation.turns[1], -1)
    menu = QMenu()
    view.fill_turn_menu(menu, turn, 2)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        next(action for action in menu.actions() if "instead" in action.text()).trigger()
    assert engine.runs[-1].beginning == (*(token.id for token in run.tokens[:2]), other)
    assert len(turn.siblings) == 3


def test_editing_is_cancelled_with_escape(qtbot: QtBot, window: MainWindow) -> None:
    say(qtbot, window, "Hi")
    area = chat_view(window).area
    press(qtbot, window, "editTurnButton")
    area.editor.text.setPlainText("Something else")
    qtbot.keyClick(area.editor.text, Qt.Key.Key_Escape)
    assert (area.editor, contents(window)) == (None, ["Hi", "Yes, it did."])


def test_enter_sends_and_shift_enter_breaks_line(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    editor = window.parts.setup.prompt.editor
    qtbot.keyClicks(editor, "one")
    qtbot.keyClick(editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(editor, "two")
    assert editor.toPlainText() == "one\ntwo"
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert engine.runs[-1].prompt[0]["content"] == "one\ntwo"
    assert editor.toPlainText() == ""


def test_enter_key_is_swapped_in_settings(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    window.parts.dialogs.open_settings()
    choice = find(window, QComboBox, "enterChoice")
    choice.setCurrentIndex(1)
    choice.activated.emit(1)
    editor = window.parts.setup.prompt.editor
    assert "Shift+Enter sends" in window.parts.chat.composer.hint.text()
    qtbot.keyClicks(editor, "one")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert (editor.toPlainText(), engine.runs) == ("one\n", [])
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.keyClick(editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert engine.runs[-1].prompt[0]["content"].startswith("one")


def test_enter_during_answer_keeps_answer_and_message(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(hold=threading.Event())
    window = open_window(qtbot, config_dir, engine)
    editor = window.parts.setup.prompt.editor
    window.parts.setup.prompt.set_prompt("Hi", is_chat=True)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and len(window.session.run.tokens) >= 10, timeout=WAIT_MS)
    editor.setPlainText("Next")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert window.session.busy
    assert editor.toPlainText() == "Next"
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        press(qtbot, window, "sendButton")  # it is “Stop” now
    assert len(engine.runs) == 1


def test_run_shortcut_during_answer_is_refused(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(hold=threading.Event())
    window = open_window(qtbot, config_dir, engine)
    window.parts.setup.prompt.set_prompt("Hi", is_chat=True)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and len(window.session.run.tokens) >= 10, timeout=WAIT_MS)
    window.parts.setup.prompt.editor.setPlainText("Next")
    window.parts.runs.run()
    assert "being written" in window.parts.centre.error_banner.accessibleDescription()
    finish(qtbot, window, window.parts.runs.stop)
    assert (len(engine.runs), window.parts.setup.prompt.editor.toPlainText()) == (1, "Next")


def test_chat_run_of_other_program_is_not_added_to_chat(qtbot: QtBot, window: MainWindow) -> None:
    say(qtbot, window, "Hi")
    foreign = Run(RunRequest(({"role": "user", "content": "From a script"},)))
    assert window.session.follow(foreign)
    assert contents(window) == ["Hi", "Yes, it did."]


def test_opening_chat_keeps_seed(qtbot: QtBot, window: MainWindow) -> None:
    say(qtbot, window, "Hi")
    first = window.parts.chat.conversation.id
    press(qtbot, window, "newChatButton")
    seed = window.parts.chosen.seed
    seed.lock_button.setChecked(False)
    seed.spin.setValue(7)
    say(qtbot, window, "Hello")
    shown = seed.spin.value()
    window.parts.chats.open(first)
    assert (seed.spin.value(), seed.is_locked) == (shown, False)


def test_input_is_below_conversation_in_chat_mode_only(qtbot: QtBot, window: MainWindow) -> None:
    prompt, centre = window.parts.setup.prompt, window.parts.centre
    assert centre.isAncestorOf(prompt.editor)
    assert not prompt.examples_row.isVisible()
    qtbot.mouseClick(prompt.mode.button("text"), Qt.MouseButton.LeftButton)
    assert prompt.isAncestorOf(prompt.editor)
    assert prompt.examples_row.isVisible()


def test_text_prompt_and_message_are_kept_apart(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, config_dir: Path
) -> None:
    prompt = window.parts.setup.prompt
    qtbot.mouseClick(prompt.mode.button("text"), Qt.MouseButton.LeftButton)
    prompt.set_prompt("Once upon a time")
    window.parts.centre.show_view("chat")
    qtbot.mouseClick(chat_view(window).offer.button, Qt.MouseButton.LeftButton)
    assert (prompt.is_chat, prompt.editor.toPlainText()) == (True, "")
    prompt.editor.setPlainText("Half a mess")
    qtbot.mouseClick(prompt.mode.button("text"), Qt.MouseButton.LeftButton)
    assert prompt.editor.toPlainText() == "Once upon a time"
    qtbot.mouseClick(prompt.mode.button("chat"), Qt.MouseButton.LeftButton)
    window.close()
    again = open_window(qtbot, config_dir, engine).parts.setup.prompt
    assert (again.is_chat, again.message, again.text_prompt) == (True, "Half a mess", "Once upon a time")


def test_system_prompt_is_sent_first_and_saved_with_chat(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, config_dir: Path
) -> None:
    press(qtbot, window, "systemPromptToggle")
    qtbot.keyClicks(chat_view(window).system.editor, "Be kind")
    for question in ("Hi", "And?"):
        say(qtbot, window, question)
    assert engine.runs[-1].prompt[0] == {"role": "system", "content": "Be kind"}
    assert contents(window) == ["Hi", "Yes, it did.", "And?", "Yes, it did."]
    window.parts.chat.new_chat()
    assert chat_view(window).system.editor.toPlainText() == ""
    window.close()
    library = open_window(qtbot, config_dir, engine).parts.chats
    chat = next(summary for summary in library._store.summaries() if summary.turns)
    library.open(chat.id)
    assert library._chat.conversation.system == "Be kind"


@dataclass
class FullContextEngine(ScriptedEngine):
    """Answers the count of a chat as scripted."""

    fit: ChatFit | None = None

    def answer(self, query: Query, report: Report) -> object:
        return self.fit if isinstance(query, ChatFitQuery) else super().answer(query, report)


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (
            ChatFit(700, 300, 100, 512, 2),
            "The context is full: 800 tokens with room for the answer, of 512, so the 2 oldest",
        ),
        (ChatFit(700, 600, 100, 512, 2), "The message is too long: it needs 600 tokens"),
        (ChatFit(300, 300, 100, 512, 0), ""),
    ],
)
def test_full_context_is_said_before_message_is_sent(qtbot: QtBot, config_dir: Path, fit: ChatFit, said: str) -> None:
    engine = FullContextEngine(fit=fit)
    window = open_window(qtbot, config_dir, engine)
    window.session.load_model("storyteller")
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=WAIT_MS)
    window.parts.setup.prompt.set_prompt("word " * 400, is_chat=True)
    with qtbot.waitSignal(window.session.answered, check_params_cb=lambda a: isinstance(a.query, ChatFitQuery)):
        window.parts.chat_fit.check()
    warning = window.parts.chat.composer.warning
    assert warning.text().startswith(said)
    assert warning.isHidden() == (not said)
    window.parts.setup.prompt.set_prompt("short", is_chat=True)
    window.parts.chat_fit.check()
    assert warning.isHidden(), "far from the limit nothing is counted"


def test_first_answer_takes_one_click_and_enter(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> None:
    """With the two clicks that choose a model in its picker, the first answer of a GGUF model takes three."""
    window = open_window(qtbot, config_dir, engine)
    qtbot.mouseClick(window.parts.setup.prompt.mode.button("chat"), Qt.MouseButton.LeftButton)
    assert QApplication.focusWidget() is window.parts.setup.prompt.editor
    qtbot.keyClicks(QApplication.focusWidget(), "Hi")
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Return)
    assert contents(window) == ["Hi", "Yes, it did."]


def test_new_chat_keeps_old_one_in_list(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    window.resize(1600, 900)
    say(qtbot, window, "A question about whales")
    press(qtbot, window, "newChatButton")
    assert contents(window) == []
    say(qtbot, window, "Another about owls")
    view = chat_view(window)
    qtbot.waitUntil(lambda: view.chats.items.count() == 2, timeout=WAIT_MS)
    qtbot.keyClicks(view.chats.search, "WHALES")
    assert [view.chats.items.item(row).text() for row in range(view.chats.items.count())] == ["A question about whales"]
    view.chats.items.itemClicked.emit(view.chats.items.item(0))
    assert contents(window)[0] == "A question about whales"


def test_chat_is_renamed_deleted_and_restored(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    window.resize(1600, 900)
    say(qtbot, window, "Hi")
    chat, view = window.parts.chat.conversation.id, chat_view(window)
    view.signals.chatRenamed.emit(chat, "Greetings")
    qtbot.waitUntil(lambda: view.chats.items.count() > 0 and view.chats.items.item(0).text() == "Greetings")
    view.signals.chatDeleted.emit(chat)
    assert contents(window) == []
    qtbot.waitUntil(lambda: not view.chats.undo_row.isHidden(), timeout=WAIT_MS)
    press(qtbot, window, "undoDeleteChat")
    assert (contents(window), window.parts.chat.conversation.name) == (["Hi", "Yes, it did."], "Greetings")


def test_opened_chat_restores_settings_it_was_made_with(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    window.parts.settings_controller.choose(strategy="greedy")
    say(qtbot, window, "Hi")
    first = window.parts.chat.conversation.id
    press(qtbot, window, "newChatButton")
    window.parts.settings_controller.choose(strategy="sampling")
    window.parts.settings_controller.set_values({"temperature": 0.4})
    say(qtbot, window, "Hello")
    assert dict(made_with_rows(window.parts.chat.conversation.turns[1].made_with))["Temperature"] == "0.4"
    window.parts.chats.open(first)
    assert window.parts.chosen.strategy.name == "greedy"
    assert window.parts.chat.conversation.turns[1].made_with["strategy"] == "greedy"


def test_imported_chat_is_opened_and_faults_are_named(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, tmp_path: Path
) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(
        '{"conversations": [{"from": "human", "value": "Hi"}, {"from": "alien", "value": "?"}]}\n'
        '{"messages": [{"role": "user", "content": "Two"}]}\n{broken\n',
        encoding="utf-8",
    )
    window.parts.chats.import_file(str(path))
    notice = window.parts.centre.notice_banner.accessibleDescription()
    assert contents(window) == ["Hi"]
    assert "2 chats" in notice
    assert "alien" in notice
    assert "line 3" in notice


def test_exported_chat_is_imported_unchanged(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    say(qtbot, window, "Hi")
    tokens = window.parts.chat.conversation.turns[1].tokens
    for name in ("chat.json", "chat.md"):
        window.parts.chats.export_file("", str(tmp_path / name))
    assert "## You\n\nHi" in (tmp_path / "chat.md").read_text(encoding="utf-8")
    window.parts.chats.import_file(str(tmp_path / "chat.json"))
    assert contents(window) == ["Hi", "Yes, it did."]
    assert window.parts.chat.conversation.turns[1].run is None
    assert window.parts.chat.conversation.turns[1].tokens == tokens


def test_answer_of_earlier_session_continues_with_its_tokens(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, config_dir: Path
) -> None:
    say(qtbot, window, "Hi")
    ids = tuple(token.id for token in window.session.run.tokens)
    window.close()
    again = open_window(qtbot, config_dir, engine)
    turn = again.parts.chat.conversation.turns[1]
    with qtbot.waitSignal(again.session.finished, timeout=WAIT_MS):
        again.parts.chat.edit_turn(turn, turn.content, CONTINUE)
    assert engine.runs[-1].beginning == ids


def test_closed_chats_release_their_runs(qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_history, "MAX_RUNS_IN_MEMORY", 1)  # those that Ctrl+Z can show again
    for question in QUESTIONS[:3]:
        say(qtbot, window, question)
    runs = [weakref.ref(turn.run) for turn in window.parts.chat.conversation.turns[1::2]]
    press(qtbot, window, "newChatButton")
    say(qtbot, window, "Hi")
    gc.collect()
    assert [run() for run in runs[:2]] == [None, None]


def test_a_stopped_answer_is_kept(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(hold=threading.Event())
    window = open_window(qtbot, config_dir, engine)
    window.parts.setup.prompt.set_prompt("Hi", is_chat=True)
    window.parts.runs.run()
    qtbot.waitUntil(lambda: window.session.run is not None and len(window.session.run.tokens) >= 10, timeout=WAIT_MS)
    finish(qtbot, window, window.parts.runs.stop)
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
    (config_dir / "chats").mkdir()
    (config_dir / "chats" / "a.json").write_text("{", encoding="utf-8")
    window = open_window(qtbot, config_dir)
    assert window.parts.chat.conversation.turns == []
    assert "a.json.bad-1" in window.parts.centre.notice_banner.accessibleDescription()


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


def test_messages_show_control_characters_and_keep_the_order_of_letters() -> None:
    assert shown_text("a\r\nb\rc\u2028d") == "a\nb\nc\nd"
    assert shown_text("\x1b[31m \u202eevil") == "␛[31m ↔evil"
    document = markdown_document("**bold**\x07 \u202eevil", theme_for("light"), 400)
    assert document.toPlainText().strip() == "bold␇ ↔evil"
