"""Context menus: every view and panel has one, with what can be done at that place."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.state.branching import TokenReplacement
from decodescope.app.views import VIEWS
from decodescope.app.views.base import View
from decodescope.app.window.main_window import MainWindow
from tests.ui.beams import beam_run, beam_steps
from tests.ui.windows import open_window, show_widget
from tests.ui.windows import run as run_window

NAMES = [*(spec.name for spec in VIEWS if not spec.hidden_when_empty), "inspector", "timeline"]


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = open_window(qtbot, config_dir)
    run_window(qtbot, window)
    return window


def part(window: MainWindow, name: str) -> View:
    panels: dict[str, View] = {"inspector": window.parts.inspector, "timeline": window.parts.timeline}
    if name in panels:
        return panels[name]
    window.parts.centre.show_view(name)
    QApplication.processEvents()
    return window.parts.centre.columns[0].view(name)


def open_menu(widget: QWidget, position: QPoint) -> QMenu:
    """The menu after a right click on a widget, closed when it is read."""
    QApplication.sendEvent(
        widget, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, position, widget.mapToGlobal(position))
    )
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    return menu


def titles(menu: QMenu) -> list[str]:
    return [action.text().partition("\t")[0] for action in menu.actions() if not action.isSeparator()]


@pytest.mark.parametrize("name", NAMES)
def test_right_click_opens_menu(window: MainWindow, name: str) -> None:
    view = part(window, name)
    menu = open_menu(view, QPoint(view.width() // 2, view.height() - 8))
    assert titles(menu)
    assert all(title.strip() for title in titles(menu))
    menu.close()


def test_menu_of_timeline_goes_to_and_explains_token(window: MainWindow) -> None:
    view = window.parts.timeline
    bars = view.sparkline
    place = QPoint(round(2 + 4.5 * bars.bar_pitch), bars.height() // 2)
    menu = open_menu(bars, place)
    assert [title.partition(" “")[0] for title in titles(menu)[:2]] == ["Explain", "Go to"]
    menu.actions()[0].trigger()
    assert window.session.run.selected == 4
    menu.actions()[1].trigger()
    assert window.session.run.cursor == 5
    menu.close()


def test_menu_of_inspector_branches_and_copies(window: MainWindow, qtbot: QtBot) -> None:
    window.session.select_token(3)
    view = window.parts.inspector
    menu = view.create_context_menu(QPoint(10, 10))
    token = window.session.run.tokens[3]
    next(action for action in menu.actions() if action.text() == "Copy the token").trigger()
    assert QApplication.clipboard().text() == token.text
    next(action for action in menu.actions() if action.text() == "Copy the explanation").trigger()
    assert token.text.strip() in QApplication.clipboard().text()
    branch = next(action for action in menu.actions() if action.text().startswith("Continue with “"))
    with qtbot.waitSignal(view.signals.branchRequested) as requested:
        branch.trigger()
    assert isinstance(requested.args[0], TokenReplacement)
    assert requested.args[0].position == 3
    menu.close()


def test_menu_of_tree_has_tools_on_background_and_hypothesis_in_table(qtbot: QtBot) -> None:
    from decodescope.app.views.tree.view import TreeView

    view = show_widget(qtbot, TreeView(), 900, 600)
    run = beam_run(beam_steps(6), ranked=True)
    view.show_run(run)
    QApplication.processEvents()
    menu = open_menu(view.canvas, view.canvas.contentsRect().bottomRight() - QPoint(3, 3))
    assert any("Show the whole tree" in title for title in titles(menu))
    menu.close()
    row = view.table.visualRect(view.table.model().index(0, 0)).center()
    menu = open_menu(view.table.viewport(), row)
    assert titles(menu)[0].startswith("Continue from")
    assert "Copy text up to here" in titles(menu)
    menu.close()


def test_menu_copies_table_and_image_of_view(window: MainWindow) -> None:
    view = part(window, "memory")
    menu = view.create_context_menu(QPoint(5, 5))
    actions = {action.text(): action for action in menu.actions()}
    actions["Copy as a table"].trigger()
    assert len(QApplication.clipboard().text().splitlines()) == len(view.export_table())
    actions["Copy as an image"].trigger()
    assert QApplication.clipboard().image().size() == view.size() * 2
    menu.close()
