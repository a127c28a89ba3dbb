"""The number of tokens beside the prompt, and prompts that are longer than the model's context."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.state.worker_messages import ErrorReport
from decodescope.app.window.main_window import MainWindow
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, open_window, run

LONG = "word " * 600


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, engine: ScriptedEngine) -> MainWindow:
    window = open_window(qtbot, config_dir, engine)
    run(qtbot, window)
    return window


def write(qtbot: QtBot, window: MainWindow, text: str, expected: str) -> None:
    """Write a prompt and wait until its tokens are counted."""
    window.parts.setup.prompt.set_prompt(text)
    label = window.parts.setup.prompt.count_label
    qtbot.waitUntil(lambda: label.text() == expected, timeout=WAIT_MS)


def offers(window: MainWindow) -> list[str]:
    actions = window.parts.centre.error_banner.message[2]
    return [name for name, _label in actions]


def press(window: MainWindow, name: str) -> None:
    button = window.parts.centre.error_banner.button(name)
    assert isinstance(button, QPushButton)
    button.click()


def test_tokens_are_counted_while_the_prompt_is_written(qtbot: QtBot, window: MainWindow) -> None:
    write(qtbot, window, "Once upon a time", "4 tokens")
    label = window.parts.setup.prompt.count_label
    assert label.property("role") == "muted"
    assert "512 tokens" in label.accessibleDescription()
    write(qtbot, window, "Once", "1 token")


def test_prompt_longer_than_the_context_is_refused_with_what_helps(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    runs = len(engine.runs)
    write(qtbot, window, LONG, "600 / 512")
    assert window.parts.setup.prompt.count_label.property("role") == "warning"
    assert not window.parts.runs.run()
    assert len(engine.runs) == runs
    error = window.parts.messages.error
    assert error is not None
    assert "600 tokens, 88 more than the model's context of 512" in error.cause
    assert offers(window) == ["shorten", "other_model", "endless_cache"]
    write(qtbot, window, "Once", "1 token")
    assert run(qtbot, window).kind == "completed"


def test_offers_of_a_long_prompt_do_what_they_say(qtbot: QtBot, window: MainWindow) -> None:
    parts = window.parts
    write(qtbot, window, LONG, "600 / 512")
    parts.runs.run()
    press(window, "shorten")
    assert parts.setup.prompt.editor.hasFocus()
    parts.runs.run()
    press(window, "other_model")
    assert parts.toolbar.model.is_open
    parts.toolbar.model.hidePopup()
    parts.runs.run()
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        press(window, "endless_cache")
    assert core.caches.registry[parts.chosen.cache.name].unbounded
    qtbot.waitUntil(lambda: parts.setup.prompt.count_label.text() == "600 tokens", timeout=WAIT_MS)


def test_error_of_a_run_with_a_long_prompt_has_the_same_offers(window: MainWindow) -> None:
    window.parts.messages.show_error(ErrorReport("The prompt cannot be used", "Long.", kind="PromptTooLongError"))
    assert offers(window) == ["shorten", "other_model", "endless_cache"]
    window.parts.messages.show_error(ErrorReport("It failed", "For now.", kind="OSError"))
    assert offers(window) == ["retry"]


def test_long_chat_is_not_refused(qtbot: QtBot, window: MainWindow) -> None:
    prompt = window.parts.setup.prompt
    write(qtbot, window, LONG, "600 / 512")
    prompt.set_prompt(LONG, is_chat=True)
    window.parts.prompt_length._count()
    assert window.parts.prompt_length.error is None
    assert prompt.count_label.text() == ""


def test_count_of_another_prompt_refuses_nothing(qtbot: QtBot, window: MainWindow) -> None:
    write(qtbot, window, LONG, "600 / 512")
    window.parts.setup.prompt.set_prompt("Short")
    assert window.parts.prompt_length.error is None
