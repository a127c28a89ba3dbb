"""The level of explanations: saved, set by menu, key and settings, and applied to visible texts at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot
from transformers import GenerationConfig

from decodescope import core
from decodescope.app.panels.settings.settings_dialog import SettingsDialog
from decodescope.app.views.inspector import inspector_rows
from decodescope.app.widgets.labels import TextBlock
from decodescope.core import explain_token
from decodescope.resources import depth
from tests.ui.windows import open_window, run

pytestmark = pytest.mark.usefixtures("restore_usual_depth")


def test_explanation_level_is_saved_and_checked_in_menu(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path)
    parts = window.parts
    for action, wanted in (("plain_words", "plain"), ("exact_words", "exact"), ("usual_words", "usual")):
        with qtbot.waitSignal(parts.appearance.wordingChanged):
            parts.actions.do(action)
        assert depth.current_depth() == parts.settings.appearance.depth == wanted
        parts.menu_bar.refresh()
        ticked = [name for name, line in parts.menu_bar.commands.items() if line.isChecked() and "_words" in name]
        assert ticked == [action]
    parts.actions.do("plain_words")
    window.close()
    depth.set_depth("usual")
    assert open_window(qtbot, tmp_path).parts.settings.appearance.depth == depth.current_depth() == "plain"


def test_settings_dialog_changes_explanation_level(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path)
    window.parts.dialogs.open_settings()
    dialog = window.findChild(SettingsDialog)
    choice = dialog.findChild(QComboBox, "depthChoice")
    with qtbot.waitSignal(window.parts.appearance.wordingChanged):
        choice.setCurrentIndex(choice.findData("exact"))
    assert depth.current_depth() == "exact"
    dialog.close()


def test_depth_context_overrides_level() -> None:
    with depth.depth_context("plain"):
        assert (depth.current_depth(), depth.pick(1, 2, 3)) == ("plain", 1)
        with depth.depth_context("exact"):
            assert depth.pick(1, 2, 3) == 3
        assert depth.pick(1, 2, 3) == 1
    assert depth.pick(1, 2, 3) == 2
    with pytest.raises(ValueError, match="deep"):
        depth.set_depth("deep")


@pytest.mark.parametrize("each", depth.DEPTHS)
def test_level_change_updates_visible_texts(qtbot: QtBot, tmp_path: Path, each: str) -> None:
    window = open_window(qtbot, tmp_path)
    run(qtbot, window)
    parts, session = window.parts, window.session
    session.select_token(3)
    token = session.run.tokens[3]
    parts.actions.do(f"{each}_words")
    shown = [block.text() for block in parts.inspector.findChildren(TextBlock) if block.isVisible()]
    assert inspector_rows.with_bold_figures(explain_token(token)) in shown
    assert inspector_rows.token_facts(token, session.run.started.vocabulary) in shown
    signs = {"plain": "candidates", "usual": "surprise", "exact": "ln p"}
    assert [sign for sign in signs.values() if sign in inspector_rows.token_facts(token, 2048)] == [signs[each]]


def test_page_text_uses_current_level() -> None:
    result = core.run(core.load("storyteller"), core.Request("The cat", GenerationConfig(max_new_tokens=4)))
    words = {
        "plain": "is what the model likes best here",
        "usual": "the highest of all",
        "exact": "is the argmax with p",
    }
    for each in depth.DEPTHS:
        with depth.depth_context(each):
            page = core.page_text(result.events)
        assert [name for name, reported in words.items() if reported in page] == [each]
