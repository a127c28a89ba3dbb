"""The menu bar: every command in one menu, ticks and greyed lines as they are, keys that work without it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QMenu, QPlainTextEdit, QPushButton
from pytestqt.qtbot import QtBot

from decodescope.app.features.palette.controller.entry_sources import EXCLUDED
from decodescope.app.panels.commands import COMMANDS, MENUS, SHORTCUTS
from decodescope.app.panels.menu_bar import MenuBar
from decodescope.app.state.glossary_terms import find_term
from decodescope.app.window.main_window import MainWindow
from decodescope.resources import language
from tests.ui.menus import menu_faults
from tests.ui.windows import activate, find, open_window, run, whole

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    return activate(qtbot, open_window(qtbot, config_dir))


def lines(menu: QMenu) -> list[QAction]:
    """Every line of a menu and its submenus."""
    found: list[QAction] = []
    for line in menu.actions():
        submenu = line.menu()
        found += lines(submenu) if isinstance(submenu, QMenu) else [line]
    return found


def top_menus(bar: MenuBar) -> list[QMenu]:
    return [menu for menu in (line.menu() for line in bar.actions()) if isinstance(menu, QMenu)]


def test_menu_bar_has_standard_menus(window: MainWindow) -> None:
    bar = window.parts.menu_bar
    assert window.menuBar() is bar
    assert [menu.title() for menu in top_menus(bar)] == ["&File", "&Edit", "&View", "&Run", "&Tools", "&Help"]
    assert all(lines(menu) for menu in top_menus(bar))


def test_every_command_is_in_exactly_one_menu(window: MainWindow) -> None:
    table = set(window.parts.actions.table)
    bar = window.parts.menu_bar
    shown = Counter(line.objectName() for menu in top_menus(bar) for line in lines(menu) if line.objectName())
    assert set(shown) == table
    assert set(shown.values()) == {1}
    assert {command.name for command in COMMANDS} == table
    assert {command.menu for command in COMMANDS} == set(MENUS)


def test_menu_palette_and_list_of_keys_agree(window: MainWindow) -> None:
    listed = {entry.key: entry for entry in whole(window).parts.palette.gather()}
    keys = {shortcut.action: shortcut for shortcut in SHORTCUTS if shortcut.action}
    for command in COMMANDS:
        line = window.parts.menu_bar.commands[command.name]
        assert [key.toString() for key in line.shortcuts()] == list(command.keys)
        assert keys[command.name].title == command.title
        if command.name not in EXCLUDED:
            entry = listed[f"action.{command.name}"]
            assert entry.title == command.title
            assert entry.shortcut == (command.keys or (command.shown_key,))[0].replace("Return", "Enter")


def test_command_keys_are_unique() -> None:
    keys = Counter(key for command in COMMANDS for key in command.keys)
    assert [key for key, count in keys.items() if count > 1] == []


def test_macos_commands_have_menu_roles(window: MainWindow) -> None:
    roles = {name: line.menuRole() for name, line in window.parts.menu_bar.commands.items()}
    expected = {
        "open_settings": QAction.MenuRole.PreferencesRole,
        "quit": QAction.MenuRole.QuitRole,
        "about": QAction.MenuRole.AboutRole,
    }
    assert {name: role for name, role in roles.items() if role != QAction.MenuRole.NoRole} == expected


@pytest.mark.parametrize("code", ["en", "zh_CN"])
def test_no_menu_has_a_stray_separator(qtbot: QtBot, window: MainWindow, code: str) -> None:
    if code != "en":
        window.parts.services.language_switch.choose(code)
        qtbot.waitUntil(lambda: language.current_language() == code)
    bar = window.parts.menu_bar
    bar.refresh()
    assert [fault for menu in top_menus(bar) for fault in menu_faults(menu)] == []


def test_checked_items_show_state_of_window(window: MainWindow) -> None:
    bar, parts = window.parts.menu_bar, window.parts
    for name in ("toggle_setup", "toggle_timeline", "toggle_inspector", "lock_seed", "split_views", "toggle_history"):
        bar.refresh()
        before = bar.commands[name].isChecked()
        parts.actions.do(name)
        bar.refresh()
        assert bar.commands[name].isChecked() != before, name
    views = {line.data(): line for line in bar.menus["&View"].actions() if line.data() in ("tokens", "tree")}
    views["tree"].trigger()
    bar.refresh()
    assert parts.centre.columns[0].current_name == "tree"
    assert views["tree"].isChecked()
    assert not views["tokens"].isChecked()


def test_disabled_item_shows_reason_and_is_enabled_when_menu_closes(qtbot: QtBot, window: MainWindow) -> None:
    bar = window.parts.menu_bar
    menu = bar.menus["&Run"]
    menu.aboutToShow.emit()
    line = bar.commands["open_used_settings"]
    assert not line.isEnabled()
    assert line.toolTip() == "No run yet."
    menu.aboutToHide.emit()
    assert line.isEnabled()
    run(qtbot, window)
    menu.aboutToShow.emit()
    assert line.isEnabled()
    assert bar.commands["branch"].isEnabled()


def test_keys_work_while_the_menu_bar_is_hidden(window: MainWindow) -> None:
    """The menu bar is hidden during a presentation."""
    window.parts.menu_bar.hide()
    scale = window.parts.settings.appearance.font_scale
    QTest.keyClick(window, Qt.Key.Key_Plus, CTRL)
    assert window.parts.settings.appearance.font_scale == pytest.approx(scale + 0.1)


def test_presentation_hides_and_restores_menu_bar(window: MainWindow) -> None:
    window.parts.presentation.enter()
    assert not window.parts.menu_bar.isVisible()
    window.parts.presentation.leave()
    assert window.parts.menu_bar.isVisible()


def test_f1_opens_help_with_link_to_shortcuts(window: MainWindow) -> None:
    QTest.keyClick(window, Qt.Key.Key_F1)
    dialog = find(window, QDialog, "helpDialog")
    assert dialog.isVisible()
    dialog.findChild(QPushButton, "help.open_shortcuts").click()
    assert find(window, QDialog, "shortcutsDialog").isVisible()
    find(window, QDialog, "shortcutsDialog").close()


def test_f1_explains_the_control_that_has_the_focus(window: MainWindow) -> None:
    toolbar = window.parts.toolbar
    for widget, kind in ((toolbar.strategy, "strategy"), (toolbar.cache, "cache")):
        name = f"{kind}.{widget.currentData()}"
        widget.setFocus()
        QTest.keyClick(widget, Qt.Key.Key_F1)
        dialog, term = find(window, QDialog, "helpDialog"), find_term(name)
        assert term is not None
        assert {term.title, term.sentence} <= {label.text() for label in dialog.findChildren(QLabel)}
        dialog.close()
        dialog.deleteLater()
        QApplication.sendPostedEvents(dialog, QEvent.Type.DeferredDelete)


def test_ctrl_slash_opens_shortcut_list(window: MainWindow) -> None:
    QTest.keyClick(window, Qt.Key.Key_Slash, CTRL)
    assert find(window, QDialog, "shortcutsDialog").isVisible()
    find(window, QDialog, "shortcutsDialog").close()


def test_undo_and_redo_act_on_focused_text_field(qtbot: QtBot, window: MainWindow) -> None:
    editor = find(window, QPlainTextEdit, "promptEdit")
    editor.setFocus()
    editor.clear()
    QTest.keyClicks(editor, "one")
    bar = window.parts.menu_bar
    bar.refresh()
    assert bar.commands["previous_run"].isEnabled()
    bar.commands["previous_run"].trigger()
    assert editor.toPlainText() == ""
    bar.refresh()
    bar.commands["next_run"].trigger()
    assert editor.toPlainText() == "one"


def test_cut_copy_paste_act_on_the_text_field(window: MainWindow) -> None:
    editor, bar = find(window, QPlainTextEdit, "promptEdit"), window.parts.menu_bar
    editor.setPlainText("A fox")
    editor.setFocus()
    for name in ("select_all", "cut"):
        bar.refresh()
        assert bar.commands[name].isEnabled(), name
        bar.commands[name].trigger()
    assert editor.toPlainText() == ""
    assert QApplication.clipboard().text() == "A fox"
    bar.refresh()
    for _ in range(2):
        bar.commands["paste"].trigger()
    assert editor.toPlainText() == "A foxA fox"
    window.parts.timeline.setFocus()
    bar.refresh()
    assert not bar.commands["paste"].isEnabled()


def test_new_text_clears_prompt_and_can_be_undone(window: MainWindow) -> None:
    editor = find(window, QPlainTextEdit, "promptEdit")
    editor.setPlainText("A fox")
    window.parts.actions.do("new_text")
    assert editor.toPlainText() == ""
    assert editor.hasFocus()
    window.parts.actions.do("previous_run")
    assert editor.toPlainText() == "A fox"


def test_recent_recordings_are_listed_and_opened(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    bar = window.parts.menu_bar
    bar.refresh()
    assert not bar.menus["recent"].menuAction().isEnabled()
    run(qtbot, window)
    paths = [tmp_path / f"run {number} & more.decodescope" for number in range(12)]
    for path in paths:
        window.parts.recorded_runs.save(str(path))
    bar.refresh()
    files = [line for line in bar.menus["recent"].actions() if line.data()]
    assert [line.data() for line in files] == [str(path) for path in reversed(paths)][:10]
    assert files[0].text() == "run 11 && more.decodescope"
    shown = window.session.run
    fourth = files[3].data()
    files[3].trigger()
    assert window.session.run is not shown
    bar.refresh()
    assert bar.menus["recent"].actions()[0].data() == fourth
    bar.menus["recent"].actions()[-1].trigger()
    bar.refresh()
    assert not bar.menus["recent"].menuAction().isEnabled()


def test_diagnostics_hold_no_prompt_and_no_path(qtbot: QtBot, window: MainWindow, config_dir: Path) -> None:
    window.parts.setup.prompt.set_prompt("A secret fox")
    run(qtbot, window)
    window.parts.actions.do("copy_diagnostics")
    text = QApplication.clipboard().text()
    assert {"Python: ", "torch: ", "Qt: ", "chosen: ", "last run: "} <= {
        line.partition(":")[0] + ": " for line in text.splitlines()
    }
    assert "secret" not in text
    assert str(config_dir) not in text
    assert str(Path.home()) not in text


def test_ctrl_f_searches_focused_tree_or_history(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, whole(window))
    window.parts.centre.show_view("tree")
    canvas = window.parts.centre.columns[0].view("tree").canvas
    canvas.setFocus()
    QTest.keyClick(canvas, Qt.Key.Key_F, CTRL)
    assert window.parts.history_panel.search_text is None
    window.parts.timeline.setFocus()
    QTest.keyClick(window.parts.timeline, Qt.Key.Key_F, CTRL)
    assert window.parts.history_panel.search_text is not None
