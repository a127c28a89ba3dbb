"""Ollama and LM Studio on this computer in the model picker: searched for on request, listed, chosen and used."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog, QLabel
from pytestqt.qtbot import QtBot

from decodescope.app.control.model_list import LOCAL_ENGINES
from decodescope.app.session.remote_engine import RemoteEngine
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.theme import theme_for
from decodescope.app.window.main_window import MainWindow
from decodescope.core.remote import engines
from tests import fake_local_engines
from tests.fake_local_engines import LocalServer
from tests.ui import gguf_folders, layout
from tests.ui.fake_engine import ScriptedEngine
from tests.ui.windows import WAIT_MS, find, open_window, run


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, LocalServer]]:
    """Ollama and LM Studio, at the ports where they are searched for."""
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    with fake_local_engines.running("ollama") as ollama, fake_local_engines.running("lm_studio") as lm_studio:
        _move(monkeypatch, ollama=ollama.port, lm_studio=lm_studio.port)
        yield {"ollama": ollama, "lm_studio": lm_studio}


def _move(monkeypatch: pytest.MonkeyPatch, **ports: int) -> None:
    entries = {
        name: replace(kind, local_port=ports.get(name, 9) if kind.local_port else 0)
        for name, kind in engines.registry.items()
    }
    monkeypatch.setattr(engines.registry, "_entries", entries)


def search(qtbot: QtBot, window: MainWindow) -> dict[str, str]:
    """Press the button of the picker that searches; return the subtitles of all lines afterwards, by title."""
    picker, model = window.parts.toolbar.model, window.parts.chosen.model
    with qtbot.waitSignal(model.listed, timeout=WAIT_MS):
        picker.commandChosen.emit(LOCAL_ENGINES)
    return {item.title: item.reason or item.subtitle for item in picker.items}


def test_engines_are_not_contacted_before_search(
    qtbot: QtBot, config_dir: Path, servers: dict[str, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    contacted: list[object] = []
    connect = socket.create_connection

    def note(address: tuple[str, int], *rest: object, **named: object) -> socket.socket:
        contacted.append(address)
        return connect(address, *rest, **named)

    monkeypatch.setattr(socket, "create_connection", note)
    window = open_window(qtbot, config_dir, ScriptedEngine())
    picker = window.parts.toolbar.model
    picker.showPopup()
    picker.hidePopup()
    window.parts.model_download.connect_engine().dialog.close()
    assert contacted == []
    lines = search(qtbot, window)
    assert {port for _host, port in contacted} == {server.port for server in servers.values()}
    assert lines["tale:1b"] == "Ollama · llama · 1.2B · Q8_0 · 1.2 GiB"
    assert lines["huge:cloud"] == "Ollama · gptoss · 120B · prompts are sent to https://ollama.com:443"
    assert lines["someone/tale-3b"] == "LM Studio · qwen2 · 3B · Q4_K_M · 1.8 GiB"
    assert "embed:latest" not in lines
    assert lines["Engines on this computer"] == "Found 4 models: Ollama, LM Studio"
    assert picker.is_open
    picker.hidePopup()


def test_found_model_can_be_run_and_is_saved(qtbot: QtBot, config_dir: Path, servers: dict[str, LocalServer]) -> None:
    window = open_window(qtbot, config_dir, RemoteEngine())
    search(qtbot, window)
    parts, name = window.parts, servers["ollama"].name("tale:1b")
    assert parts.settings.models.engines == []
    parts.toolbar.model.hidePopup()
    assert parts.toolbar.model.select_data(name)
    qtbot.waitUntil(lambda: window.session.model is not None, timeout=WAIT_MS)
    assert run(qtbot, window).kind == "completed"
    assert window.session.run.text == "".join(piece for piece, _likely in fake_local_engines.STORY)
    window.session.select_token(len(window.session.run.tokens) - 1)
    assert [row.label for row in parts.inspector.page.bars.rows][:2] == [".", "!"]
    assert "Ollama" in parts.status.device.text()
    parts.dialogs.open_used_settings()
    used = [label.text() for label in find(window, QDialog, "usedSettingsDialog").findChildren(QLabel)]
    assert any(text.startswith("Ollama, 127.0.0.1:") for text in used)
    parts.settings_saver.save_settings()
    assert parts.settings.models.engines == [name]
    assert f'"{name}"' in SettingsStore(config_dir).path.read_text(encoding="utf-8")


def test_missing_or_refusing_engine_shows_reason(
    qtbot: QtBot, config_dir: Path, servers: dict[str, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    servers["lm_studio"].key = "secret"
    window = open_window(qtbot, config_dir, ScriptedEngine())
    _move(monkeypatch, lm_studio=servers["lm_studio"].port)
    lines = search(qtbot, window)
    assert "401" in lines["LM Studio"]
    assert "Enter the key under “Connect to an engine…”" in lines["LM Studio"]
    assert lines["Engines on this computer"] == "No models found"
    _move(monkeypatch)
    lines = search(qtbot, window)
    assert "LM Studio" not in lines
    assert lines["Engines on this computer"].startswith("Neither Ollama nor LM Studio answers here.")
    window.parts.toolbar.model.hidePopup()


def test_a_window_that_closes_stops_the_search(
    qtbot: QtBot, config_dir: Path, servers: dict[str, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.core.test_remote_hostile_servers import CHUNKED, answering

    with answering(CHUNKED, is_silent_after=True) as silent:
        _move(monkeypatch, ollama=int(silent.url.rpartition(":")[2]))
        window = open_window(qtbot, config_dir, ScriptedEngine())
        searching = window.parts.chosen.model.search_local_engines()
        assert silent.has_answered.wait(10)
        window.close()
        assert not searching.is_searching
        assert silent.is_left.wait(10)


def test_picker_lists_gguf_files_and_engines_of_other_programs(
    qtbot: QtBot, config_dir: Path, tmp_path: Path, servers: dict[str, LocalServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf_folders.use_home(tmp_path, monkeypatch)
    files = gguf_folders.fill(tmp_path)
    kinds = {"LM Studio": "Q8_0", "Ollama": "Q8_0", "Hugging Face": "F16", "llama.cpp": "F32"}
    window = open_window(qtbot, config_dir, ScriptedEngine())
    picker = window.parts.toolbar.model
    qtbot.waitUntil(lambda: all(picker.findData(str(file)) >= 0 for file in files.values()), timeout=WAIT_MS)
    lines = search(qtbot, window)
    assert picker.items[picker.findData(str(files["Ollama"]))].title == gguf_folders.OLLAMA_NAME
    for program, file in files.items():
        item = picker.items[picker.findData(str(file))]
        assert item.subtitle.endswith(f" · {program}")
        assert item.columns[1] == kinds[program]
        assert not item.reason
    titles = list(lines)
    assert titles.index("storyteller") < titles.index("Tiny-Tales-Q8_0") < titles.index("tale:1b")
    for scheme in ("light", "dark"):
        window.set_theme(theme_for(scheme))
        layout.settle(picker.view().window())
        assert layout.faults(picker.view().window()) == []
    picker.hidePopup()
