"""Disks that refuse and files that are damaged: the window starts, says so once, and loses nothing it holds."""

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


def told(window: MainWindow) -> str:
    banner = window.parts.centre.notice_banner
    return banner.accessibleDescription() if banner.isVisible() else ""


def test_a_full_disk_is_told_once(qtbot: QtBot, config_dir: Path, full_disk: None) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.settings_saver.save_settings()
    assert "settings.json cannot be written: no space left on device. Free up space" in told(window)
    window.parts.messages.dismiss()
    window.parts.settings_saver.save_settings()
    assert told(window) == ""


def test_a_chat_that_cannot_be_kept_is_told(qtbot: QtBot, config_dir: Path, full_disk: None) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.setup.prompt.set_prompt("user: Hello", is_chat=True)
    run(qtbot, window)
    assert "chat.json cannot be written" in told(window)
    assert len(window.parts.chat.conversation.turns) == 2


@pytest.mark.parametrize(
    "values",
    [{"top_k": "many"}, {"top_k": 2**31}, {"top_p": [0.5]}, {"bad_words_ids": [[[[[[1]]]]]]}, {"stop_strings": 5}],
    ids=str,
)
def test_remembered_values_of_any_type_open_a_window(qtbot: QtBot, config_dir: Path, values: dict[str, Any]) -> None:
    choices = {"version": 2, "strategy": "sampling", "values": {"sampling": {"temperature": 0.5, **values}}}
    (config_dir / "settings.json").write_text(json.dumps({"choices": choices}), encoding="utf-8")
    window = open_window(qtbot, config_dir)
    assert window.parts.requests.request().settings["temperature"] == 0.5
    assert next(iter(values)) in told(window)


def test_a_preset_of_wrong_types_is_taken_as_far_as_it_goes(qtbot: QtBot, config_dir: Path, tmp_path: Path) -> None:
    window = open_window(qtbot, config_dir)
    (tmp_path / "odd.json").write_text('{"do_sample": true, "temperature": 0.5, "top_k": "x"}', encoding="utf-8")
    window.parts.presets.use_preset(tmp_path / "odd.json")
    assert window.parts.requests.request().settings["temperature"] == 0.5
    assert "unusable values" in told(window)
