"""Opening a wrong file shows a message, and the window keeps working."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope.app.window.main_window import MainWindow
from tests.ui.windows import run


def nothing(folder: Path) -> None:
    """An empty folder."""


def text_for_a_size(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "llama", "hidden_size": "wide", "num_hidden_layers": -1}')


def a_list(folder: Path) -> None:
    (folder / "config.json").write_text("[1, 2]")


def brackets(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000)


def a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "config.json")


def bytes_for_text(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"\xff\xfe\x00\x01")


def folder_as_config(folder: Path) -> None:
    (folder / "config.json").mkdir()


def odd_weights(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "gpt2", "n_layer": 2, "architectures": [5]}')
    (folder / "model.safetensors").write_bytes((10).to_bytes(8, "little") + b"[1, 2, 3] ")


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "make",
    [
        nothing,
        text_for_a_size,
        a_list,
        brackets,
        pytest.param(a_pipe, marks=pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")),
        bytes_for_text,
        folder_as_config,
        odd_weights,
    ],
)
def test_invalid_model_folder_shows_error(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    make(folder)
    window.parts.folders.use(str(folder))
    row = window.parts.toolbar.model.findData(str(folder))
    assert window.parts.centre.error_banner.isVisible() or row >= 0
    assert window.parts.chosen.model.name
    window.parts.toolbar.model.select_data("storyteller")
    assert run(qtbot, window).kind == "completed"


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "5",
        "[" * 100_000,
        '{"temperature": "hot", "do_sample": true}',
        '{"top_k": 2147483648, "do_sample": true}',
        '{"forced_bos_token_id": Infinity}',
        '{"eos_token_id": {"a": 1}}',
        '{"num_beams": "many"}',
        '{"do_sample": "yes"}',
        '{"stop_strings": -Infinity, "bad_words_ids": 7, "sequence_bias": [[1]]}',
        '{"decodescope": 5}',
        '{"decodescope": {"strategy": 5, "options": [], "drafters": 7}}',
        '{"decodescope": {"strategy": "assisted", "options": {"schedule": [1]}, "drafters": ["\\ud800"]}}',
    ],
)
def test_preset_of_any_content_is_applied_or_reported(window: MainWindow, tmp_path: Path, content: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content, encoding="utf-8")
    window.parts.presets.use_preset(path)
    centre = window.parts.centre
    assert centre.error_banner.isVisible() or centre.notice_banner.isVisible()
    window.parts.presets.save_preset_as("Again")
    window.parts.requests.request()


def test_missing_preset_or_folder_shows_error(window: MainWindow, tmp_path: Path) -> None:
    for path in (tmp_path / "gone.json", tmp_path):
        window.parts.messages.dismiss()
        window.parts.presets.use_preset(path)
        assert window.parts.centre.error_banner.isVisible()


def test_preset_folder_that_is_file_shows_error(window: MainWindow) -> None:
    window.parts.store.presets_folder.write_text("in the way", encoding="utf-8")
    window.parts.presets.save_preset_as("Mine")
    assert window.parts.centre.error_banner.isVisible()
    window.parts.presets.show_presets()


def test_settings_with_undecodable_path_are_saved(window: MainWindow, config_dir: Path) -> None:
    window.parts.settings.models.folders.append("/models/\udcff")
    window.parts.setup.prompt.set_prompt("kept")
    window.close()
    assert json.loads((config_dir / "settings.json").read_text(encoding="utf-8"))["choices"]["prompt"] == "kept"
