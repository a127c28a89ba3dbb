"""The left column: rows are never cut, chips take two rows, the footer keeps its height, settings without effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.panels.parameter_row import ParameterRow
from decodescope.app.storage import presets
from decodescope.app.widgets.row_scroll_area import RowScrollArea
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import find


def settle() -> None:
    for _ in range(4):
        QApplication.processEvents()


def cut_rows(window: MainWindow) -> list[str]:
    """Names of the rows of settings, heads and chips that are visible in part at the lower edge."""
    scroll = find(window, RowScrollArea, "setupScroll")
    parts = [
        *scroll.widget().findChildren(ParameterRow),
        *(group.head for group in window.parts.setup.parameters.groups.values()),
        *window.parts.setup.prompt.chips,
    ]
    spans = {part.objectName(): part.mapTo(scroll.viewport(), QPoint()).y() for part in parts if part.isVisible()}
    heights = {part.objectName(): part.height() for part in parts}
    return [name for name, top in spans.items() if top < scroll.fold < top + heights[name]]


@pytest.mark.parametrize(("size", "scale"), [((1280, 800), 1.0), ((900, 600), 1.0), ((1280, 800), 1.5)])
def test_no_row_is_cut_at_the_fold(window: MainWindow, size: tuple[int, int], scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    window.parts.setup.parameters.set_all_open(True)
    bar = find(window, RowScrollArea, "setupScroll").verticalScrollBar()
    for height in range(size[1], size[1] + 48, 13):
        window.resize(size[0], height)
        settle()
        for position in (0, 17, 111, 340):
            bar.setValue(min(position, bar.maximum()))
            assert cut_rows(window) == [], (height, position)


def test_last_row_can_be_reached(window: MainWindow) -> None:
    window.resize(900, 600)
    settle()
    scroll = find(window, RowScrollArea, "setupScroll")
    scroll.verticalScrollBar().setValue(scroll.verticalScrollBar().maximum())
    button = window.parts.setup.presets.export_button
    bottom = button.mapTo(scroll.viewport(), QPoint(0, button.height())).y()
    assert button.isVisible()
    assert bottom <= scroll.fold


@pytest.mark.parametrize(("width", "scale"), [(1280, 1.0), (1280, 1.5), (1920, 1.0), (900, 1.0)])
def test_example_chips_take_two_rows_and_more_has_the_rest(window: MainWindow, width: int, scale: float) -> None:
    window.parts.appearance.set_font_scale(scale)
    window.resize(width, 900)
    settle()
    prompt = window.parts.setup.prompt
    shown = [chip for chip in (prompt.score_button, *prompt.chips) if not chip.isHidden()]
    assert prompt.more in shown
    assert len({chip.y() for chip in shown}) <= 2
    titles = {action.text() for action in prompt.more.menu().actions() if action.isVisible()}
    titles |= {chip.text() for chip in prompt.chips[:-1] if not chip.isHidden()}
    assert titles == {example.title for example in prompt.examples}


def test_footer_keeps_its_height_whatever_it_says(window: MainWindow) -> None:
    setup = window.parts.setup
    settle()
    before = setup._help_area.height(), setup._scroll.height()
    setup.show_memory_estimate("Needs 57.8 MiB of 22.4 GiB free: much more", "")
    settle()
    assert setup.memory_label.text() == "Needs 57.8 MiB of 22.4 GiB free"
    setup.show_memory_estimate("Needs 57.8 GiB of 22.4 GiB free: more", "Use a smaller cache. " * 6)
    settle()
    assert "Use a smaller cache." in setup.help.text()
    setup.set_summary("What the strategy does. " * 9)
    assert "Use a smaller cache." in setup.help.text()
    settle()
    assert (setup._help_area.height(), setup._scroll.height()) == before
    setup.show_memory_estimate("Fits", "")
    assert "What the strategy does." in setup.help.text()


def test_sampling_settings_are_neither_named_nor_sent_while_sampling_is_off(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    parts = window.parts
    parts.settings_controller.choose("storyteller", "assisted", drafts=["storyteller-draft"])
    parts.settings_controller.set_values({"temperature": 0.8, "top_k": 0, "repetition_penalty": 1.2})
    assert parts.toolbar.strategy.accessibleDescription().startswith("repetition penalty 1.2")
    assert not parts.setup.parameters.groups["Randomness"].head.is_changed
    assert {"temperature", "top_k"}.isdisjoint(parts.requests.request().settings)
    saved = presets.load_preset(presets.save_preset(tmp_path, parts.settings_controller.as_preset("mine")))
    assert saved.values["temperature"] == 0.8
    parts.setup.parameters.rows["do_sample"].editor.setValue(True)
    assert parts.requests.request().settings["temperature"] == 0.8
    assert "temperature 0.8" in parts.toolbar.strategy.accessibleDescription()


def test_scrolled_rows_stay_when_the_focused_field_is_disabled(qtbot: QtBot) -> None:
    """A model of sounds allows no text while it is loaded; Qt then moves the focus to the next field."""
    content, area = QWidget(), RowScrollArea()
    column = QVBoxLayout(content)
    first, last = QLineEdit(), QPushButton("Below")
    column.addWidget(first)
    column.addSpacing(900)
    column.addWidget(last)
    area.setWidget(content)
    qtbot.addWidget(area)
    area.resize(300, 200)
    with qtbot.waitExposed(area):
        area.show()
    area.activateWindow()
    qtbot.waitUntil(area.isActiveWindow)
    first.setFocus()
    qtbot.keyClick(first, Qt.Key.Key_Tab)
    assert area.verticalScrollBar().value() > 0
    first.setFocus()
    area.verticalScrollBar().setValue(0)
    first.setEnabled(False)
    assert area.focusWidget() is last
    assert area.verticalScrollBar().value() == 0
