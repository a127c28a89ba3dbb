"""Choosing draft models: one by a click, several by their boxes; what does not fit says why; kept everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from decodescope.app.panels.toolbar import MAX_DRAFTERS, DraftPicker
from decodescope.app.start.cli import parse
from decodescope.app.start.launch import LaunchProblem, apply_options
from decodescope.app.storage import presets
from decodescope.app.storage.settings import LastChoices
from decodescope.app.theme.theme import theme_for
from decodescope.app.widgets.picker_combo import PickerItem
from decodescope.app.window.main_window import MainWindow
from tests.ui.model_folders import model_folder
from tests.ui.windows import open_window

ITEMS = [PickerItem("a", "a"), PickerItem("b", "b"), PickerItem("c", "c"), PickerItem("x", "x", "", "Too large.")]


@pytest.fixture
def picker(qtbot: QtBot) -> DraftPicker:
    picker = DraftPicker("draftCombo", "Draft model")
    qtbot.addWidget(picker)
    picker.set_theme(theme_for("light"))
    picker.offer(ITEMS)
    picker.show()
    return picker


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


def test_click_selects_single_draft(qtbot: QtBot, picker: DraftPicker) -> None:
    assert picker.chosen == ("a",)
    picker.toggle("c")
    with qtbot.waitSignal(picker.chosenChanged):
        picker.activated.emit(0)
    assert picker.chosen == ("a",)


def test_click_on_checkbox_toggles_draft_and_keeps_popup_open(qtbot: QtBot, picker: DraftPicker) -> None:
    picker.showPopup()
    view = picker.view()
    for row, expected in ((2, ("a", "c")), (1, ("a", "c", "b")), (0, ("c", "b")), (3, ("c", "b")), (1, ("c",))):
        rect = view.visualRect(picker.model().index(row, 0))
        spot = QPoint(rect.right() - 20, rect.center().y())
        qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=spot)
        assert picker.chosen == expected
    assert view.isVisible()
    picker.hidePopup()


def test_space_key_toggles_draft(qtbot: QtBot, picker: DraftPicker) -> None:
    picker.showPopup()
    picker.view().setCurrentIndex(picker.model().index(1, 0))
    qtbot.keyClick(picker.view(), Qt.Key.Key_Space)
    assert picker.chosen == ("a", "b")
    assert picker.accessibleDescription() == "a, b"
    picker.hidePopup()


def test_last_draft_cannot_be_removed_and_count_is_limited(picker: DraftPicker) -> None:
    picker.toggle("a")
    assert picker.chosen == ("a",)
    picker.offer(PickerItem(name, name) for name in "abcdef")
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
