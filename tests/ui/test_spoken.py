"""A screen reader at work: everything in the window has a name, a role, a value, and tells of what happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog, QWidget
from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from tests.app.history_files import keeping
from tests.app.test_cache_history import events, plan
from tests.ui.beams import beam_run, beam_steps
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.spoken import faults, hear
from tests.ui.test_memory_view import ended
from tests.ui.test_speculation_view import a_run
from tests.ui.windows import open_window, run


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    return open_window(qtbot, config_dir, ScriptedEngine())


def check(part: QWidget) -> None:
    assert "\n".join(faults(hear(part))) == ""


def test_everything_has_a_name_in_every_view(qtbot: QtBot, window: MainWindow) -> None:
    check(window)
    run(qtbot, window)
    window.session.select_token(2)
    check(window)
    for number in range(1, window.parts.centre.columns[0].tabs.count()):
        window.parts.centre.show_number(number)
        check(window)


def test_beams_rounds_and_bytes_have_names(qtbot: QtBot, window: MainWindow) -> None:
    for view, shown in (
        ("tree", beam_run(beam_steps(6), ranked=True)),
        ("speculation", a_run()),
        ("memory", ended(events(plan(9), 40))),
    ):
        assert window.session.show(shown)
        window.parts.centre.show_view(view)
        check(window)


def test_history_chat_and_split_have_names(qtbot: QtBot, window: MainWindow) -> None:
    assert window.history.store is not None
    for number in range(3):
        window.history.store.keep(
            keeping(number, "Once upon a time", "a fox", title=f"Run {number}", tokens=7, speed=9.0)
        )
    window.parts.history_panel.toggle()
    check(window)
    window.parts.setup.prompt.mode.button("chat").click()
    window.parts.setup.prompt.editor.setPlainText("Hello")
    run(qtbot, window)
    window.parts.centre.set_split(True)
    check(window)


@pytest.mark.parametrize("kind", ["settings", "export", "keys", "used", "code"])
def test_every_control_of_the_dialogs_has_a_name(qtbot: QtBot, window: MainWindow, kind: str) -> None:
    run(qtbot, window)
    parts = window.parts
    {
        "settings": parts.dialogs.open_settings, "export": parts.export.ask, "keys": parts.dialogs.open_shortcuts,
        "used": parts.dialogs.open_used_settings, "code": parts.code.ask,
    }[kind]()  # fmt: skip
    (dialog,) = (part for part in window.findChildren(QDialog) if part.isVisible())
    check(dialog)
    dialog.close()
