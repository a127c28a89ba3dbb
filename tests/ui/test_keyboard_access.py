"""Everything works without a mouse: regions, menus, and every clickable control."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QMenu,
    QScrollBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from decodescope.app.panels.parameter_row import ValueSlider
from decodescope.app.window.main_window import MainWindow
from tests.ui.layout import settle
from tests.ui.windows import activate, open_window, run, whole

SHIFT = Qt.KeyboardModifier.ShiftModifier
PRESSED = (QAbstractButton, QComboBox, QAbstractSlider, QAbstractSpinBox, QLineEdit)


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    window = activate(qtbot, whole(open_window(qtbot, config_dir)))
    run(qtbot, window)
    return window


def focused_region(window: MainWindow) -> str:
    """The part of the window that has the cursor."""
    parts, here = window.parts, QApplication.focusWidget()
    rooms = {"toolbar": parts.toolbar, "setup": parts.setup, "centre": parts.centre, "inspector": parts.inspector,
             "timeline": parts.timeline, "status": parts.status}  # fmt: skip
    return next(name for name, part in rooms.items() if part.isAncestorOf(here))


def press(key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(QApplication.focusWidget(), key, modifiers)


def test_f6_cycles_through_regions_and_restores_focus(window: MainWindow) -> None:
    window.parts.toolbar.cache.setFocus()
    there = []
    for _ in range(6):
        there.append(focused_region(window))
        press(Qt.Key.Key_F6)
    assert there == ["toolbar", "setup", "centre", "inspector", "timeline", "status"]
    assert QApplication.focusWidget() is window.parts.toolbar.cache
    for name in reversed(there):
        press(Qt.Key.Key_F6, SHIFT)
        assert focused_region(window) == name


def test_f6_skips_closed_region(window: MainWindow) -> None:
    window.parts.layout.toggle_setup()
    window.parts.toolbar.cache.setFocus()
    press(Qt.Key.Key_F6)
    assert focused_region(window) == "centre"
    assert window.parts.centre.columns[0].current_view.isAncestorOf(QApplication.focusWidget())


def test_shift_f10_opens_menu_below_selected_token(window: MainWindow) -> None:
    view = window.parts.centre.columns[0].view("tokens")
    view.setFocus()
    for _ in range(3):
        press(Qt.Key.Key_Right)
    press(Qt.Key.Key_F10, SHIFT)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    rect = view.token_rect(window.session.run.selected)
    corner = view.area.viewport().mapToGlobal(rect.bottomLeft())
    last = menu.screen().availableGeometry().right() + 1 - menu.width()  # with some fonts the screen ends there
    assert (menu.x(), menu.y()) == (min(corner.x(), last), corner.y())
    assert any("Continue with" in action.text() for action in menu.actions())
    menu.close()


def test_palette_contains_actions_of_token_menu(qtbot: QtBot, window: MainWindow) -> None:
    window.session.select_token(3)
    before = len(window.session.run.tokens), window.session.run.id
    entry = next(
        entry
        for entry in window.parts.palette.gather()
        if entry.key.startswith("picked.") and "Continue with" in entry.title
    )
    with qtbot.waitSignal(window.session.finished):
        entry.run()
    assert window.session.run.id != before[1]
    assert window.session.run.request.shared_tokens == 3


def name_of(widget: QWidget) -> str:
    return widget.accessibleName() or (widget.text().replace("&", "") if isinstance(widget, QAbstractButton) else "")


def is_part_of_another(widget: QWidget) -> bool:
    """Return whether a widget is part of another control or a second way to it."""
    inside = isinstance(widget.parentWidget(), QAbstractSpinBox | QComboBox | QLineEdit)
    inside = inside or isinstance(widget, ValueSlider)  # the number next to it is the same setting
    return inside or isinstance(widget, QScrollBar) or widget.objectName().startswith(("qt_", "Scroll"))


@pytest.mark.every(2)
@pytest.mark.parametrize("view", ["tokens", "chat", "tree", "speculation", "memory", "compare"])
def test_every_clickable_control_is_reachable_by_keyboard(window: MainWindow, view: str) -> None:
    window.parts.centre.show_view(view)
    window.parts.centre.split_button.setChecked(view == "tree")
    if view == "memory":
        window.parts.history_panel.show()
    window.parts.messages.show_setup_error("Something is wrong", "It is.", "Mend it.")
    settle(window)
    assert window.tab_order is not None
    stops = set(window.tab_order.tab_stops())
    listed = {entry.title for entry in window.parts.palette.gather()}
    out_of_reach = [
        f"{type(widget).__name__} {widget.objectName()} {name_of(widget)}"
        for widget in window.findChildren(QWidget)
        if isinstance(widget, PRESSED) and widget.isVisible() and widget.isEnabled() and not is_part_of_another(widget)
        if widget not in stops and name_of(widget) not in listed
    ]
    assert out_of_reach == []


def test_altgr_letters_are_typed_while_a_text_field_has_the_focus(window: MainWindow) -> None:
    """On Windows AltGr is Ctrl and Alt: no shortcut may take the letter that a layout writes with it."""
    editor = window.parts.setup.prompt.editor
    altgr = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
    lost = []
    for key in (*range(Qt.Key.Key_0, Qt.Key.Key_9 + 1), *range(Qt.Key.Key_A, Qt.Key.Key_Z + 1)):
        for modifiers in (altgr, altgr | Qt.KeyboardModifier.ShiftModifier):
            editor.setPlainText("")
            editor.setFocus()
            QTest.sendKeyEvent(QTest.KeyAction.Click, editor, Qt.Key(key), "ø", modifiers)
            if editor.toPlainText() != "ø":
                lost.append((Qt.Key(key).name, modifiers))
    assert lost == []


def test_no_shortcut_of_the_window_has_ctrl_and_alt(window: MainWindow) -> None:
    whole(window)
    bound = [key for action in window.findChildren(QAction) for key in action.shortcuts()]
    bound += [shortcut.key() for shortcut in window.findChildren(QShortcut)]
    assert len(bound) > 40
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier
    taken = [
        key.toString() for key in bound if any(key[n].keyboardModifiers() & both == both for n in range(key.count()))
    ]
    assert taken == []
