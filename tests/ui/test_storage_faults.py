"""Disk errors and damaged files: the window starts, shows one notice and loses no data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.storage import json_files
from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import open_window, run


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json_files, "_replace_atomically", refuse)


def notice_text(window: MainWindow) -> str:
    banner = window.parts.centre.notice_banner
    return banner.accessibleDescription() if banner.isVisible() else ""


def test_full_disk_shows_notice_once(qtbot: QtBot, config_dir: Path, full_disk: None) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.settings_saver.save_settings()
    assert "settings.json cannot be written: no space left on the disk. Free up space" in notice_text(window)
    window.parts.messages.dismiss()
    window.parts.settings_saver.save_settings()
    assert notice_text(window) == ""


def test_unsavable_chat_shows_notice(qtbot: QtBot, config_dir: Path, full_disk: None) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.setup.prompt.set_prompt("user: Hello", is_chat=True)
    run(qtbot, window)
    assert ".json cannot be written" in notice_text(window)
    assert len(window.parts.chat.conversation.turns) == 2


@pytest.mark.parametrize(
    "values",
    [{"top_k": "many"}, {"top_k": 2**31}, {"top_p": [0.5]}, {"bad_words_ids": [[[[[[1]]]]]]}, {"stop_strings": 5}],
    ids=str,
)
def test_invalid_saved_values_still_open_window(qtbot: QtBot, config_dir: Path, values: dict[str, Any]) -> None:
    choices = {"version": 2, "strategy": "sampling", "values": {"sampling": {"temperature": 0.5, **values}}}
    (config_dir / "settings.json").write_text(json.dumps({"choices": choices}), encoding="utf-8")
    window = open_window(qtbot, config_dir)
    assert window.parts.requests.request().settings["temperature"] == 0.5
    assert next(iter(values)) in notice_text(window)


def test_preset_with_wrong_types_applies_valid_values(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = open_window(qtbot, config_dir)
    (tmp_path / "odd.json").write_text('{"do_sample": true, "temperature": 0.5, "top_k": "x"}', encoding="utf-8")
    window.parts.presets.use_preset(tmp_path / "odd.json")
    assert window.parts.requests.request().settings["temperature"] == 0.5
    assert "unusable values" in notice_text(window)
