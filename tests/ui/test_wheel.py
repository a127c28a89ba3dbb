"""The wheel scrolls and changes no value, in no dialog, panel or lab, with the keyboard's focus or without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDateTimeEdit,
    QDialog,
    QScrollBar,
    QTabBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import activate, find, open_window, run, whole

NONE, CTRL = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier


def turn(widget: QWidget, notches: int, modifiers: Qt.KeyboardModifier = NONE) -> None:
    """Turn the wheel over the middle of a widget. What it ignores goes to what it lies in: Qt does so for events of the
    desktop, but not for those that a program sends."""
    target: QWidget | None = widget
    while target is not None:
        place = QPointF(target.mapFromGlobal(widget.mapToGlobal(widget.rect().center())))
        event = QWheelEvent(
            place, QPointF(target.mapToGlobal(place)), QPoint(), QPoint(0, notches * 120), Qt.MouseButton.NoButton,
            modifiers, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        event.ignore()
        QApplication.sendEvent(target, event)
        if event.isAccepted() or target.isWindow():
            return
        target = target.parentWidget()


def value(widget: QWidget) -> object:
    """Return the value of a control; None for one without a value and for scroll bars."""
    if isinstance(widget, QScrollBar):
        return None
    if isinstance(widget, QComboBox | QTabBar):
        return widget.currentIndex()
    if isinstance(widget, QDateTimeEdit):
        return widget.dateTime()
    if isinstance(widget, QAbstractSpinBox):
        return widget.text()
    if isinstance(widget, QAbstractSlider):
        return widget.value()
    return None


def controls(within: QWidget) -> Iterator[QWidget]:
    """Everything that holds a value and belongs to that window, hidden parts included."""
    for widget in within.findChildren(QWidget):
        if widget.window() is within and value(widget) is not None:
            yield widget


def changed_by_the_wheel(within: QWidget) -> tuple[list[str], int]:
    """Controls whose value a turn of the wheel changes, with focus and without; and how many there are."""
    found, seen = [], 0
    for widget in list(controls(within)):
        seen += 1
        for focused in (False, True):
            if focused:
                widget.setFocus()
            for notches in (-1, 1, -3):
                before = value(widget)
                turn(widget, notches)
                if value(widget) != before:
                    found.append(f"{type(widget).__name__} {widget.objectName() or widget.accessibleName()}")
    return found, seen


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> MainWindow:
    return activate(qtbot, open_window(qtbot, config_dir))


def test_wheel_changes_no_value_in_window(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, whole(window))
    for name in ("sampling", "beam_search", "assisted"):
        window.parts.settings_controller.choose(strategy=name)
        window.parts.setup.parameters.set_all_open(True)
        found, seen = changed_by_the_wheel(window)
        assert found == []
        assert seen > 20


DIALOGS: dict[str, Callable[[MainWindow], object]] = {
    "settings": lambda window: window.parts.dialogs.open_settings(),
    "export": lambda window: window.parts.export.open_dialog(),
    "demo": lambda window: window.parts.demos.open_dialog(),
    "code": lambda window: window.parts.code.show_code(),
    "models": lambda window: window.parts.model_download.open(),
    "engine": lambda window: window.parts.model_download.connect_engine(),
    "scale": lambda window: window.parts.labs.open_scale(),
    "preference": lambda window: window.parts.labs.open_preference(),
    "speed": lambda window: window.parts.labs.open_speed(),
    "likelihood": lambda window: window.parts.likelihood.open(),
    "posterior": lambda window: window.parts.likelihood.open_posterior(),
    "studies": lambda window: window.parts.studies.open(),
    "glossary": lambda window: window.parts.glossary.open_glossary(),
    "help": lambda window: window.parts.dialogs.open_help(),
}
HOLDS_NOTHING = {"help", "code", "engine", "models", "glossary"}
"""Dialogs that may have no control of this kind."""


@pytest.mark.every(2)
@pytest.mark.parametrize("name", DIALOGS)
def test_wheel_changes_no_value_in_dialogs_and_labs(qtbot: QtBot, window: MainWindow, name: str) -> None:
    run(qtbot, window)
    before = set(QApplication.topLevelWidgets())
    DIALOGS[name](window)
    QApplication.processEvents()
    opened = [
        top for top in QApplication.topLevelWidgets()
        if top.isVisible() and (top not in before or top is not window) and top is not window
    ]  # fmt: skip
    assert opened
    total = 0
    for top in opened:
        found, seen = changed_by_the_wheel(top)
        assert found == []
        total += seen
    assert total or name in HOLDS_NOTHING
    for top in opened:
        top.close()


def test_wheel_scrolls_settings_dialog(window: MainWindow) -> None:
    """The wheel moves the page although the pointer is over a list of choices."""
    dialog = window.parts.dialogs.open_settings()
    dialog.resize(dialog.width(), 300)
    QApplication.processEvents()
    combo = next(widget for widget in controls(dialog) if isinstance(widget, QComboBox) and widget.isVisible())
    before, chosen = dialog.scroll_position, combo.currentIndex()
    turn(combo, -3)
    assert dialog.scroll_position > before
    assert combo.currentIndex() == chosen
    find(window, QDialog, "settingsDialog").close()


def test_parameters_scroll_under_the_wheel(window: MainWindow) -> None:
    window.resize(900, 600)
    QApplication.processEvents()
    row = window.parts.setup.parameters.rows["temperature"]
    bar = window.findChild(QWidget, "setupScroll").verticalScrollBar()
    row.editor.setFocus()
    before, held = bar.value(), row.editor.value()
    turn(row.editor, -2)
    assert bar.value() > before
    assert row.editor.value() == held


def test_wheel_does_not_set_focus(window: MainWindow) -> None:
    focus = {widget: widget.focusPolicy() for widget in controls(whole(window))}
    assert focus
    assert [
        w.objectName() for w, policy in focus.items() if policy & Qt.FocusPolicy.WheelFocus == policy.WheelFocus
    ] == []


@pytest.mark.parametrize("where", ["tokenView", "promptEdit", "inspector"])
def test_ctrl_and_the_wheel_change_the_text_size(qtbot: QtBot, window: MainWindow, where: str) -> None:
    run(qtbot, window)
    widget = find(window, QWidget, where)
    target = getattr(widget, "area", widget)
    target = target.viewport() if hasattr(target, "viewport") else target
    for notches, expected in ((1, 1.1), (2, 1.3), (-3, 1.0)):
        turn(target, notches, CTRL)
        assert window.parts.settings.appearance.font_scale == pytest.approx(expected)
    turn(target, -1)
    assert window.parts.settings.appearance.font_scale == 1.0


def test_ctrl_and_the_wheel_zoom_a_tree(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, whole(window))
    window.parts.centre.show_view("tree")
    QApplication.processEvents()
    canvas = window.parts.centre.columns[0].view("tree").canvas
    before = canvas.navigation.zoom
    turn(canvas, 1, CTRL)
    assert canvas.navigation.zoom != before
    assert window.parts.settings.appearance.font_scale == 1.0
