"""Every empty view explains how to fill it and has a button for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.state.worker_messages import ModelInfo
from decodescope.app.window.main_window import MainWindow
from decodescope.core import strategies
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.layout import settle
from tests.ui.windows import WAIT_MS, open_window, run

VIEWS = ("tokens", "chat", "tree", "speculation", "memory", "compare", "branches")
INFO = ModelInfo("storyteller", "storyteller", "cpu", "float32", 2, "", 5_700_000, 512, 2048, has_chat=True)


def fill_button(part: QWidget) -> QPushButton:
    """The one button that the part offers, on the screen."""
    buttons = [button for button in part.findChildren(QPushButton, "fillButton") if button.isVisible()]
    assert len(buttons) == 1
    return buttons[0]


def view(window: MainWindow, name: str) -> QWidget:
    centre = window.parts.centre
    centre.set_view_available(name, True)
    assert centre.show_view(name)
    settle(window)
    return centre.columns[0].view(name)


def press(qtbot: QtBot, window: MainWindow, part: QWidget) -> None:
    """Press what it offers, and wait for the run's end."""
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.mouseClick(fill_button(part), Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("name", VIEWS)
def test_every_empty_view_has_button_with_description(window: MainWindow, name: str) -> None:
    button = fill_button(view(window, name))
    assert button.text()
    assert button.accessibleDescription()
    assert button.focusPolicy() & Qt.FocusPolicy.TabFocus


@pytest.mark.parametrize("name", ["tokens", "memory"])
def test_button_of_empty_view_starts_run(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine, name: str) -> None:
    part = view(window, name)
    press(qtbot, window, part)
    assert len(engine.runs) == 1
    assert not [button for button in part.findChildren(QPushButton, "fillButton") if button.isVisible()]


def test_empty_tree_view_runs_beam_search(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    press(qtbot, window, view(window, "tree"))
    assert engine.runs[-1].strategy == "beam_search"


def test_empty_tree_view_keeps_selected_beam_strategy(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    window.parts.toolbar.strategy.select_data("diverse_beam_search")
    press(qtbot, window, view(window, "tree"))
    assert engine.runs[-1].strategy == "diverse_beam_search"


def test_empty_speculation_view_runs_with_draft(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    press(qtbot, window, view(window, "speculation"))
    assert strategies.registry[engine.runs[-1].strategy].takes_drafters
    assert engine.runs[-1].draft_names


def test_empty_speculation_view_without_draft_uses_prompt_lookup(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    window.parts.toolbar.draft.offer([])
    press(qtbot, window, view(window, "speculation"))
    assert strategies.registry[engine.runs[-1].strategy].speculates
    assert not engine.runs[-1].draft_names


def test_empty_compare_view_runs_and_compares(qtbot: QtBot, window: MainWindow, engine: ScriptedEngine) -> None:
    part = view(window, "compare")
    press(qtbot, window, part)
    qtbot.waitUntil(lambda: not window.session.busy and len(engine.runs) > 3, timeout=WAIT_MS)
    assert len({request.strategy for request in engine.runs}) > 3


def test_empty_chat_view_focuses_message_editor(qtbot: QtBot, window: MainWindow) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.mouseClick(fill_button(view(window, "chat")), Qt.MouseButton.LeftButton)
    prompt = window.parts.setup.prompt
    assert prompt.is_chat
    assert QApplication.focusWidget() is prompt.editor


def test_empty_branches_view_branches_at_least_certain_token(
    qtbot: QtBot, window: MainWindow, engine: ScriptedEngine
) -> None:
    run(qtbot, window)
    tokens = window.session.run.tokens
    press(qtbot, window, view(window, "branches"))
    place = engine.runs[-1].shared_tokens
    assert place is not None
    sure = [token.alternatives[0].raw_probability for token in tokens]
    assert sure[place] == min(sure)


def test_empty_inspector_starts_run(qtbot: QtBot, window: MainWindow) -> None:
    press(qtbot, window, window.parts.inspector)
    assert window.session.run.tokens


def test_empty_history_offers_run_or_clearing_search(qtbot: QtBot, window: MainWindow) -> None:
    panel = window.parts.history_panel
    panel.show()
    press(qtbot, window, panel.view)
    qtbot.waitUntil(lambda: bool(panel.view.list.runs.rowCount()))
    panel.view.search.setText("no such words")
    panel.refresh()
    fill_button(panel.view).click()
    assert (panel.view.query, panel.view.list.runs.rowCount()) == ("", 1)


@pytest.mark.parametrize(
    ("name", "info", "why"),
    [
        ("chat", INFO._replace(has_chat=False), "storyteller has no chat template."),
        ("tree", INFO._replace(unsupported_strategies={name: "It keeps a state." for name in strategies.registry}),
         "It keeps a state."),
        ("speculation", INFO._replace(unsupported_strategies={name: "No drafts." for name in strategies.registry}),
         "No drafts."),
    ],
)  # fmt: skip
def test_unsupported_view_shows_reason_instead_of_button(
    qtbot: QtBot, config_dir: Path, name: str, info: ModelInfo, why: str
) -> None:
    window = open_window(qtbot, config_dir, ScriptedEngine(info=info))
    part = view(window, name)
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=WAIT_MS)
    offer = part.findChild(QPushButton, "fillButton").parentWidget()
    qtbot.waitUntil(lambda: not offer.button.isVisible())
    assert offer.reason_label.text() == why
    assert offer.reason_label.isVisible()
