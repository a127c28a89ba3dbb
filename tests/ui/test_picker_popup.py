"""The pickers' lists: search, groups, keys, commands, and the width that the pickers share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app.control.model_list import MIN_FOR_RECENT
from decodescope.app.panels.toolbar import _distribute
from decodescope.app.widgets.picker_combo import PickerCombo
from decodescope.app.widgets.picker_items import PickerItem
from decodescope.app.widgets.picker_popup import matches
from decodescope.app.window.main_window import MainWindow
from decodescope.core import strategies
from decodescope.core.strategies import GROUPS
from tests.ui.model_folders import model_folder
from tests.ui.windows import run

KEYS = Qt.Key


def press(key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.keyClick(QApplication.focusWidget(), key, modifiers)


def headings(picker: PickerCombo) -> list[str]:
    return [row.heading for row in picker.popup.model.rows if row.item is None]


def titles(picker: PickerCombo) -> list[str]:
    return [row.item.title for row in picker.popup.model.rows if row.item is not None]


def test_keyboard_alone_opens_searches_chooses_and_closes(window: MainWindow) -> None:
    picker = window.parts.toolbar.strategy
    picker.setFocus()
    press(KEYS.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert picker.is_open
    assert QApplication.focusWidget() is picker.popup.field
    press(KEYS.Key_Escape)
    assert not picker.is_open
    assert QApplication.focusWidget() is picker
    QTest.keyClicks(picker, "b")
    QTest.keyClicks(picker.popup.field, "eam")
    assert picker.popup.field.text() == "beam"
    assert titles(picker)[0] == "Beam search"
    press(KEYS.Key_Down)
    assert picker.popup.current_item.data == "beam_sampling"
    press(KEYS.Key_Return)
    assert (picker.currentData(), picker.is_open) == ("beam_sampling", False)
    assert QApplication.focusWidget() is picker


def test_highlight_skips_headings_and_wraps_around(window: MainWindow) -> None:
    picker = window.parts.toolbar.strategy
    picker.showPopup()
    press(KEYS.Key_Home, Qt.KeyboardModifier.ControlModifier)
    visited = []
    for _ in picker.items:
        visited.append(picker.popup.current_item.data)
        press(KEYS.Key_Down)
    assert visited == [item.data for item in picker.items]
    assert picker.popup.current_item.data == visited[0]
    press(KEYS.Key_Up)
    assert picker.popup.current_item.data == visited[-1]
    assert picker.popup.field.accessibleDescription().startswith(picker.items[-1].title)


def test_pointer_moves_the_only_highlight(qtbot: QtBot, window: MainWindow) -> None:
    picker = window.parts.toolbar.cache
    picker.showPopup()
    view = picker.view()
    index = picker.popup.index_of("static")
    qtbot.mouseMove(view.viewport(), QPoint(4, 4))
    qtbot.mouseMove(view.viewport(), view.visualRect(index).center())
    qtbot.waitUntil(lambda: picker.popup.current_item.data == "static")
    assert view.selectionModel().selectedIndexes() == [index]
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center())
    assert picker.currentData() == "static"


def test_item_with_reason_is_not_chosen(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)  # a model that is loaded later would bring its own reasons
    picker = window.parts.toolbar.strategy
    window.parts.chosen.strategy.show_unsupported({"dola": "It has two layers."})
    picker.showPopup()
    assert picker.popup.show_item("dola")
    press(KEYS.Key_Return)
    assert picker.is_open
    assert picker.currentData() != "dola"


def test_press_outside_closes_the_list(qtbot: QtBot, window: MainWindow) -> None:
    picker = window.parts.toolbar.model
    picker.showPopup()
    qtbot.mouseClick(picker.popup.field, Qt.MouseButton.LeftButton)
    assert picker.is_open
    qtbot.mouseClick(window.parts.status, Qt.MouseButton.LeftButton)
    assert not picker.is_open
    picker.showPopup()
    window.parts.setup.prompt.editor.setFocus()
    assert not picker.is_open
    assert QApplication.focusWidget() is window.parts.setup.prompt.editor


def test_commands_are_buttons_reached_by_tab(qtbot: QtBot, window: MainWindow) -> None:
    picker = window.parts.toolbar.model
    picker.showPopup()
    names = []
    for _ in picker.commands:
        press(KEYS.Key_Tab)
        names.append(QApplication.focusWidget().objectName().removeprefix("command."))
    assert names == [command.name for command in picker.commands]
    press(KEYS.Key_Tab)
    assert QApplication.focusWidget() is picker.popup.field
    press(KEYS.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    with qtbot.waitSignal(picker.commandChosen) as signal:
        QTest.keyClick(QApplication.focusWidget(), KEYS.Key_Space)
    assert signal.args == [names[-1]]
    assert not picker.is_open


def test_search_ignores_case_and_accents_and_finds_other_names() -> None:
    item = PickerItem("Résumé", "summarizer", "Translates", columns=("2.8 M", "Q4_K_M"), keywords="T5 seq2seq")
    assert all(matches(item, text) for text in ("", "resume", "RÉSUMÉ", "t5 q4_k", "summarizer", "  trans "))
    assert not matches(item, "resume llama")


def test_search_without_matches_says_so(window: MainWindow) -> None:
    picker = window.parts.toolbar.model
    picker.showPopup()
    picker.popup.field.setText("no such model")
    assert picker.popup.empty_label.isVisible()
    assert titles(picker) == []
    press(KEYS.Key_Return)
    assert picker.is_open
    picker.popup.field.setText("draft")
    assert titles(picker) == ["storyteller-draft", "storyteller-draft-b"]


def test_models_are_grouped_with_size_and_bits(window: MainWindow, tmp_path: Path) -> None:
    window.parts.folders.use(model_folder(tmp_path / "own", 2))
    window.parts.chosen.model.add_engine("http://127.0.0.1:9/v1#tale")
    picker = window.parts.toolbar.model
    picker.showPopup()
    assert [heading for heading in headings(picker) if heading != "Recent"][:2] == ["Bundled", "This computer"]
    assert "Engines" in headings(picker)
    storyteller = picker.items[picker.findData("storyteller")]
    assert storyteller.columns == ("5.7 M", "16 bits", "10.9 MiB")
    kinds = {item.data: item.icon for item in picker.items}
    assert (kinds["listener"], kinds["describer"], kinds["storyteller-mamba"]) == ("sound", "picture", "loop")


def test_recent_models_come_first_in_a_long_list(window: MainWindow, tmp_path: Path) -> None:
    model, picker = window.parts.chosen.model, window.parts.toolbar.model
    model.choose("listener")
    picker.showPopup()
    assert headings(picker) == ["Bundled"]
    picker.hidePopup()
    for number in range(MIN_FOR_RECENT):
        model.add_folder(model_folder(tmp_path / f"own{number}", 2), select=False)
    model.choose("describer")
    picker.showPopup()
    assert headings(picker)[0] == "Recent"
    assert titles(picker)[:2] == ["describer", "listener"]
    assert titles(picker).count("describer") == 2
    assert picker.popup.current_item.data == "describer"
    assert window.parts.settings.models.recent[:2] == ["describer", "listener"]


def test_each_strategy_is_in_the_group_it_names(window: MainWindow) -> None:
    picker = window.parts.toolbar.strategy
    groups = {item.data: item.group for item in picker.items}
    assert groups["greedy"] == groups["sampling"] == "One token at a time"
    assert groups["beam_search"] == groups["constrained_beam_search"] == "Several texts at once"
    assert {groups[s.name] for s in strategies.registry.values() if s.speculates} == {"With drafts"}
    picker.showPopup()
    assert headings(picker) == list(GROUPS)
    assert [item.data for item in picker.items if item.badge] == ["greedy", "sampling"]


def test_plugin_strategy_appears_in_its_group_without_further_code(window: MainWindow) -> None:
    picker, greedy = window.parts.toolbar.strategy, strategies.registry["greedy"]
    mine = replace(greedy, name="mine", title="Mine", aliases=(), group="My group", selects=lambda flags: False)
    plain = replace(mine, name="plain", title="Plain", group="")
    try:
        strategies.registry.set_plugin_entries([mine, plain])
        window.parts.chosen.strategy.refresh_registry()
        picker.showPopup()
        assert headings(picker) == [*GROUPS, "My group"]
        groups = {item.data: item.group for item in picker.items}
        assert groups["plain"] == "One token at a time"
    finally:
        strategies.registry.set_plugin_entries([])
        window.parts.chosen.strategy.refresh_registry()


def text_widths(picker: PickerCombo) -> int:
    """The width that both lines of the box need."""
    theme = picker.current_theme
    first = QFontMetrics(theme.font(13, 500)).horizontalAdvance(picker._title())
    return max(first, QFontMetrics(theme.font(11)).horizontalAdvance(picker._second_line()))


@pytest.mark.parametrize("size", [(1280, 800), (1440, 900), (1920, 1200)])
@pytest.mark.parametrize("strategy", ["sampling", "assisted"])
def test_nothing_on_the_toolbar_is_elided_while_width_is_free(
    qtbot: QtBot, window: MainWindow, size: tuple[int, int], strategy: str
) -> None:
    toolbar = window.parts.toolbar
    window.resize(*size)
    window.parts.settings_controller.choose(strategy=strategy)
    window.parts.settings_controller.set_values({"temperature": 0.8, "top_p": 0.95, "max_new_tokens": 300})
    shown = [picker for picker in toolbar.pickers if picker.isVisible()]
    around = toolbar.current_theme.px(36)

    def is_complete_or_full() -> bool:
        cut = [picker for picker in shown if picker.width() < text_widths(picker) + around]
        spare = toolbar.tours_button.x() - max(picker.geometry().right() for picker in shown)
        return not cut or spare <= 3 * toolbar._row.spacing()

    qtbot.waitUntil(is_complete_or_full)  # the layout takes two turns of the event loop


def test_missing_width_is_taken_from_the_longest_text_first() -> None:
    assert _distribute([(50, 100), (50, 400)], 600) == [100, 400]
    assert _distribute([(50, 100), (50, 400)], 300) == [100, 200]
    assert _distribute([(50, 100), (50, 400)], 140) == [70, 70]
    assert _distribute([(100, 100), (300, 400)], 200) == [100, 100]
    assert _distribute([(90, 100), (440, 440), (95, 150)], 500) == [90, 315, 95], "a long name leaves short ones whole"
    assert _distribute([(90, 100), (440, 440), (95, 150)], 150) == [50, 50, 50]


def test_draft_that_no_longer_fits_is_removed_with_a_sentence(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    parts = window.parts
    parts.settings_controller.choose(model_folder(tmp_path / "one", 9, "a"), "assisted")
    draft = model_folder(tmp_path / "small", 2, "a")
    parts.settings_controller.choose(drafts=[draft])
    assert parts.requests.request().draft_names == (draft,)
    with qtbot.waitSignal(parts.chosen.drafts.removed) as removed:
        parts.settings_controller.choose(model_folder(tmp_path / "two", 9, "b"))
    assert removed.args[0] == "small cannot draft for two and was removed. Choose another draft model."
    assert parts.requests.request().draft_names == ()
    assert next(item for item in parts.toolbar.draft.items if item.data == draft).group == "Different tokenizer"


def test_draft_is_replaced_by_one_with_the_tokenizer_of_the_new_model(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    parts = window.parts
    other = model_folder(tmp_path / "fitting", 2, "b")
    parts.chosen.model.add_folder(other, select=False)
    parts.settings_controller.choose("storyteller", "assisted", drafts=["storyteller-draft"])
    with qtbot.waitSignal(parts.chosen.drafts.removed) as removed:
        parts.settings_controller.choose(model_folder(tmp_path / "two", 9, "b"))
    assert removed.args[0].endswith("Now drafting: fitting.")
    assert parts.requests.request().draft_names == (other,)


def test_no_notice_when_new_drafts_come_with_the_model(window: MainWindow, tmp_path: Path) -> None:
    parts, notices = window.parts, []
    parts.chosen.drafts.removed.connect(notices.append)
    parts.settings_controller.choose("storyteller", "assisted", drafts=["storyteller-draft"])
    fitting = model_folder(tmp_path / "fitting", 2, "b")
    parts.settings_controller.choose(model_folder(tmp_path / "two", 9, "b"), drafts=[fitting])
    QApplication.processEvents()
    assert notices == []
    assert parts.requests.request().draft_names == (fitting,)
