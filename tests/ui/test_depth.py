"""The one switch of the depth of words: kept, by menu, key and settings; what is shown is said again at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from app.panels.settings_dialog import SettingsDialog
from resources import depth
from tests.ui.windows import open_window


@pytest.fixture(autouse=True)
def _as_usual() -> Iterator[None]:
    yield
    depth.use(depth.USUAL)


def test_the_switch_is_kept_and_ticked(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path)
    parts = window.parts
    for action, wanted in (("plain_words", "plain"), ("exact_words", "exact"), ("usual_words", "usual")):
        with qtbot.waitSignal(parts.appearance.wordsChanged):
            parts.actions.do(action)
        assert depth.current() == parts.settings.appearance.depth == wanted
        ticked = [a.data() for a in parts.appearance.menu.actions() if a.isChecked() and "_words" in str(a.data())]
        assert ticked == [action]
    parts.actions.do("plain_words")
    window.close()
    depth.use("usual")
    assert open_window(qtbot, tmp_path).parts.settings.appearance.depth == depth.current() == "plain"


def test_the_settings_change_it_too(qtbot: QtBot, tmp_path: Path) -> None:
    window = open_window(qtbot, tmp_path)
    window.parts.dialogs.open_settings()
    dialog = window.findChild(SettingsDialog)
    choice = dialog.findChild(QComboBox, "depthChoice")
    with qtbot.waitSignal(window.parts.appearance.wordsChanged):
        choice.setCurrentIndex(choice.findData("exact"))
    assert depth.current() == "exact"
    dialog.close()


def test_one_text_can_be_made_at_another_depth() -> None:
    with depth.at("plain"):
        assert (depth.current(), depth.pick(1, 2, 3)) == ("plain", 1)
        with depth.at("exact"):
            assert depth.pick(1, 2, 3) == 3
        assert depth.pick(1, 2, 3) == 1
    assert depth.pick(1, 2, 3) == 2
    with pytest.raises(ValueError, match="deep"):
        depth.use("deep")
