"""Language from the settings, the system or the command line; numbers, dates and Qt's dialogs follow it."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QDialogButtonBox, QDoubleSpinBox
from pytestqt.qtbot import QtBot

from decodescope.app.__main__ import main
from decodescope.app.start.cli import peek_option
from decodescope.app.storage.settings import LANGUAGE_CHOICES
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.language import resolve_language, set_language
from decodescope.resources.language import LANGUAGES, current_language

pytestmark = pytest.mark.usefixtures("restore_english")


@pytest.mark.parametrize(
    ("system", "code"),
    [
        (["zh-Hans-CN", "zh-CN", "zh-Hans", "zh"], "zh_CN"),
        (["de-Latn-AT", "de-AT", "de", "zh-Hans-CN"], "zh_CN"),
        (["en-Latn-GB", "en-GB", "en", "zh-Hans-CN"], "en"),
        (["zh-Hant-TW", "zh-TW", "zh-Hant", "zh"], "en"),
        (["fr-Latn-FR", "fr-FR", "fr"], "en"),
        (["C"], "en"),
        ([], "en"),
    ],
)
def test_system_language_resolves_to_first_available(system: list[str], code: str) -> None:
    with mock.patch.object(QLocale, "uiLanguages", return_value=system):
        assert resolve_language("system") == code
    assert (resolve_language("zh_CN"), resolve_language("en")) == ("zh_CN", "en")


def test_numbers_and_qt_texts_follow_language(qtbot: QtBot) -> None:
    reported = {}
    for code in LANGUAGES:
        set_language(code)
        buttons, spin = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel), QDoubleSpinBox()
        for part in (buttons, spin):
            qtbot.addWidget(part)
        spin.setValue(0.5)
        cancel = buttons.button(QDialogButtonBox.StandardButton.Cancel)
        reported[code] = (current_language(), QLocale().name(), cancel.text(), spin.text())
    assert reported["en"] == ("en", "en_US", "Cancel", "0.50")
    assert reported["zh_CN"] == ("zh_CN", "zh_CN", "取消", "0.50")


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ({"language": "zh_CN"}, "zh_CN"),
        ({"language": "tlh"}, "system"),
        ({"language": ["en"]}, "system"),
        (3, "system"),
    ],
)
def test_saved_language_is_available_before_settings_are_loaded(config_dir: Path, kept: object, found: str) -> None:
    store = SettingsStore(config_dir)
    assert store.saved_language == "system"
    store.path.write_text(json.dumps({"appearance": kept}))
    assert store.saved_language == found


def test_peek_option_accepts_every_form() -> None:
    known = LANGUAGE_CHOICES
    assert peek_option(["--run", "--language", "zh_CN"], "--language", known) == "zh_CN"
    assert peek_option(["--language=en", "x.decodescope"], "--language", known) == "en"
    assert peek_option(["--language", "zh_CN", "--language", "en"], "--language", known) == "en"
    assert peek_option(["--language", "tlh"], "--language", known) == ""
    assert peek_option(["--language"], "--language", known) == ""
    assert peek_option([], "--config-dir") == ""


def test_command_line_error_uses_language_option(config_dir: Path) -> None:
    for line, code in ((["--language", "zh_CN", "--seed", "x"], "zh_CN"), (["--seed", "x"], "en")):
        with pytest.raises(SystemExit):
            main(["--config-dir", str(config_dir), *line])
        assert current_language() == code
