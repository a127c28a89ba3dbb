"""Helpers for the history of a window: save runs, open the panel, search, select a row."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from decodescope.app.features.history.panel.history_view import HistoryView
from decodescope.app.state.run import Run
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import WAIT_MS, run


def save_run(qtbot: QtBot, window: MainWindow, prompt: str) -> str:
    """Run a prompt; return the id of the saved run."""
    window.parts.setup.prompt.set_prompt(prompt)
    with qtbot.waitSignal(window.history.runSaved, timeout=WAIT_MS) as stored:
        run(qtbot, window)
    return str(stored.args[0])


def history(window: MainWindow) -> HistoryView:
    """The panel, open."""
    view = window.parts.history_panel.view
    if view is None or not view.isVisible():
        window.parts.actions.do("toggle_history")
    view = window.parts.history_panel.view
    assert view is not None
    assert view.isVisible()
    return view


def listed_names(view: HistoryView) -> list[str]:
    """Return the names in the list."""
    runs = view.list.runs
    return [str(runs.index(row).data()) for row in range(runs.rowCount())]


def click(view: HistoryView, row: int) -> None:
    place = view.list.visualRect(view.list.runs.index(row)).center()
    QTest.mouseClick(view.list.viewport(), Qt.MouseButton.LeftButton, pos=place)


def name_editor(view: HistoryView) -> QLineEdit:
    """Return the editor of the name that is being changed."""
    editor = view.list.viewport().findChild(QLineEdit)
    assert editor is not None
    return editor


def search(qtbot: QtBot, view: HistoryView, words: str) -> None:
    with qtbot.waitSignal(view.searchChanged, timeout=WAIT_MS):
        view.search.setText(words)


def shown_run(window: MainWindow) -> Run:
    assert window.session.run is not None
    return window.session.run
