"""Choosing draft models: one by a click, several by their boxes; what does not fit says why; kept everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.panels.toolbar import MAX_DRAFTERS, DraftPicker
from decodescope.app.start.cli import parse
from decodescope.app.start.launch import LaunchProblem, apply_options
from decodescope.app.storage import presets
from decodescope.app.storage.settings import LastChoices
from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.picker_items import PickerItem
from decodescope.app.window.main_window import MainWindow
from tests.ui.model_folders import model_folder
from tests.ui.windows import open_window

ITEMS = [PickerItem("a", "a"), PickerItem("b", "b"), PickerItem("c", "c"), PickerItem("x", "x", "", "Too large.")]


@pytest.fixture
def picker(qtbot: QtBot) -> Iterator[DraftPicker]:
    host = QWidget()
    qtbot.addWidget(host)
    picker = DraftPicker("draftCombo", "Draft model", parent=host)
    picker.set_theme(theme_for("light"))
    picker.offer(ITEMS, "a")
    host.resize(800, 600)
    picker.resize(200, 38)
    with qtbot.waitExposed(host):
        host.show()
    yield picker
    picker.hidePopup()


@pytest.fixture
def drafts(tmp_path: Path) -> list[str]:
    """Two compatible drafts, one with another tokenizer, and one with a recurrent state."""
    return [
        model_folder(tmp_path / "one", 2),
        model_folder(tmp_path / "two", 3),
        model_folder(tmp_path / "other", 1, "b"),
        model_folder(tmp_path / "state", 2, model_type="mamba"),
    ]


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path, tmp_path: Path, drafts: list[str]) -> MainWindow:
    window = open_window(qtbot, config_dir)
    window.parts.settings_controller.choose(model_folder(tmp_path / "target", 9), "token_tree")
    return window


def spot(picker: DraftPicker, name: str, on_box: bool) -> QPoint:
    """A point of a row: in its tick box, or in its title."""
    popup = picker.popup
    rect = popup.list.visualRect(popup.index_of(name))
    return popup.delegate.mark_rect(rect).center().toPoint() if on_box else rect.center()


def test_click_selects_single_draft(qtbot: QtBot, picker: DraftPicker) -> None:
    assert picker.chosen == ("a",)
    picker.toggle("c")
    picker.showPopup()
    with qtbot.waitSignal(picker.chosenChanged):
        qtbot.mouseRelease(picker.view().viewport(), Qt.MouseButton.LeftButton, pos=spot(picker, "a", on_box=False))
    assert picker.chosen == ("a",)
    assert not picker.is_open


def test_click_on_checkbox_toggles_draft_and_keeps_popup_open(qtbot: QtBot, picker: DraftPicker) -> None:
    picker.showPopup()
    for name, expected in (
        ("c", ("a", "c")), ("b", ("a", "c", "b")), ("a", ("c", "b")), ("x", ("c", "b")), ("b", ("c",)),
    ):  # fmt: skip
        qtbot.mouseRelease(picker.view().viewport(), Qt.MouseButton.LeftButton, pos=spot(picker, name, on_box=True))
        assert picker.chosen == expected
    assert picker.is_open
    picker.hidePopup()


def test_space_key_toggles_draft_unless_it_belongs_to_a_search(qtbot: QtBot, picker: DraftPicker) -> None:
    picker.showPopup()
    field = picker.popup.field
    picker.popup.show_item("b")
    qtbot.keyClick(field, Qt.Key.Key_Space)
    assert picker.chosen == ("a", "b")
    assert picker.accessibleDescription() == "a, b"
    field.setText("c")
    qtbot.keyClick(field, Qt.Key.Key_Space)
    assert (picker.chosen, field.text()) == (("a", "b"), "c ")
    picker.hidePopup()


def test_last_draft_cannot_be_removed_and_count_is_limited(picker: DraftPicker) -> None:
    picker.toggle("a")
    assert picker.chosen == ("a",)
    picker.offer([PickerItem(name, name) for name in "abcdef"])
    for name in "bcdef":
        picker.toggle(name)
    assert len(picker.chosen) == MAX_DRAFTERS


def test_new_items_keep_supported_choices(picker: DraftPicker) -> None:
    picker.choose_all(["c", "a"])
    picker.offer([PickerItem("a", "a", "", "Not smaller."), *ITEMS[1:]])
    assert picker.chosen == ("c",)
    picker.offer(ITEMS[3:])
    assert picker.chosen == ()
    assert picker.unsupported_reason("x") == "Too large."


def test_checkboxes_are_drawn_in_both_themes(qtbot: QtBot, picker: DraftPicker) -> None:
    picker.showPopup()
    before = picker.view().viewport().grab().toImage()
    picker.toggle("b")
    assert picker.view().viewport().grab().toImage() != before
    picker.set_theme(theme_for("dark", 1.5))
    assert not picker.view().viewport().grab().isNull()
    picker.hidePopup()


def test_several_drafts_are_in_request(window: MainWindow, drafts: list[str]) -> None:
    assert window.parts.settings_controller.choose(drafts=drafts[:2]) == []
    assert window.parts.requests.request().draft_names == tuple(drafts[:2])
    window.parts.toolbar.strategy.select_data("greedy")
    assert window.parts.requests.request().draft_names == ()


def test_command_line_accepts_several_drafts(window: MainWindow, drafts: list[str]) -> None:
    apply_options(window, parse(["--draft", drafts[1], "--draft", drafts[0]]))
    assert window.parts.requests.request().draft_names == (drafts[1], drafts[0])


def test_draft_with_other_tokenizer_is_listed_last_with_hint(window: MainWindow, drafts: list[str]) -> None:
    picker = window.parts.toolbar.draft
    window.parts.settings_controller.choose(drafts=drafts[:3])
    row = picker.findData(drafts[2])
    assert row > picker.findData(drafts[1])
    reported = " ".join(str(value) for value in picker.model().itemData(picker.model().index(row, 0)).values())
    assert "different tokenizer" in reported
    apply_options(window, parse(["--draft", drafts[2]]))
    assert window.parts.requests.request().draft_names == (drafts[2],)


def test_missing_or_unsupported_draft_raises_launch_problem(window: MainWindow, drafts: list[str]) -> None:
    with pytest.raises(LaunchProblem, match="No draft model “nowhere”"):
        apply_options(window, parse(["--draft", "nowhere"]))
    with pytest.raises(LaunchProblem, match="recurrent state"):
        apply_options(window, parse(["--draft", drafts[3]]))


def test_run_without_draft_is_disabled(window: MainWindow) -> None:
    window.parts.toolbar.draft.offer([PickerItem("x", "x", "", "It writes with another tokenizer.")])
    assert any("No draft model" in problem for problem in window.parts.requests.problems)
    assert not window.parts.toolbar.run_button.isEnabled() or window.parts.chosen.drafts.names == ()


def test_drafts_are_stored_in_settings(window: MainWindow, drafts: list[str]) -> None:
    window.parts.settings_controller.choose(drafts=drafts[:2])
    window.parts.settings_controller.store_settings()
    assert window.parts.settings.choices.drafts == drafts[:2]
    assert LastChoices.read({"version": 1, "draft": "small"}) == (LastChoices(drafts=["small"]), [])
    assert LastChoices.read({"version": 1, "draft": ""}) == (LastChoices(), [])


def test_drafts_are_stored_in_presets(tmp_path: Path, window: MainWindow, drafts: list[str]) -> None:
    window.parts.settings_controller.choose(drafts=drafts[:2])
    saved = presets.load_preset(
        presets.save_preset(tmp_path / "presets", window.parts.settings_controller.as_preset("pair"))
    )
    assert saved.drafters == tuple(drafts[:2])
    window.parts.toolbar.draft.select_data(drafts[0])
    window.parts.settings_controller.apply_preset(saved)
    assert window.parts.requests.request().draft_names == tuple(drafts[:2])
