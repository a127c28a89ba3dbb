"""Damaged settings, chats and presets are read as far as possible, nothing is lost, and the program starts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from decodescope.app import build_window
from decodescope.app.storage import presets
from decodescope.app.storage.chat_store import ChatStore
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.core import strategies
from tests.fuzz.damage import CHAT, PRESET, SETTINGS, Put, damaged, put
from tests.fuzz.outcomes import check_cases, long, short
from tests.fuzz.values import json_odd
from tests.ui.fake_engine import ScriptedEngine

settings_files, chats, preset_files = (damaged(whole, json_odd) for whole in (SETTINGS, CHAT, PRESET))
files = st.tuples(settings_files, chats, preset_files)
Damages = tuple[bytes | Put, bytes | Put, bytes | Put]


@contextmanager
def folder_with(damages: Damages) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="decodescope-fuzz-"))
    try:
        for name, damage in zip(("settings.json", "chats/odd.json", "presets/odd.json"), damages, strict=True):
            put(folder / name, damage)
        yield folder
    finally:
        shutil.rmtree(folder)


def read_all(damages: Damages) -> None:
    """Each file is read, what is written after it is read back whole, and what could not be used is kept beside."""
    with folder_with(damages) as folder:
        _settings(folder, damages[0])
        _chat(folder, damages[1])
        preset = presets.load_preset(folder / "presets" / "odd.json")
        presets.save_preset(folder / "presets", preset)
        again = presets.load_preset(folder / "presets" / "odd.json")
        assert (again.strategy, again.values) == (preset.strategy, preset.values)
        assert not again.rejected
        assert set(preset.values) <= set(strategies.registry[preset.strategy].parameter_names)


def _settings(folder: Path, damage: bytes | Put) -> None:
    store = SettingsStore(folder)
    store.load()
    store.drop_invalid_values()
    _kept(folder, "settings.json", damage, store.notices)
    store.save()
    again = SettingsStore(folder)
    assert again.load() == store.settings
    again.drop_invalid_values()
    assert again.notices == []


def _chat(folder: Path, damage: bytes | Put) -> None:
    store = ChatStore(folder)
    talk = store.restore_last()
    _kept(folder, "chats/odd.json", damage, store.notices)
    store.save(talk)
    store.release()
    other = ChatStore(folder)
    again = other.restore_last()
    assert [turn.message for turn in again.turns] == [turn.message for turn in talk.turns]
    assert other.notices == []


def _kept(folder: Path, name: str, damage: bytes | Put, notices: list[str]) -> None:
    """The bytes of every file still exist, whatever was reported."""
    if notices and isinstance(damage, bytes):
        assert any(copy.read_bytes() == damage for copy in folder.glob(f"{name}.*-1"))


def start(qtbot: QtBot, damages: Damages) -> None:
    """A window over the damaged files opens, runs, and closes."""
    with folder_with(damages) as folder, qtbot.captureExceptions() as raised:
        window = build_window(folder, ScriptedEngine(["word"]))
        window.show()
        for name in ("odd", "absent"):
            window.parts.presets.use_preset(folder / "presets" / f"{name}.json")
        if not window.parts.requests.problems:
            with qtbot.waitSignal(window.session.finished, timeout=10_000):
                window.parts.runs.run()
        window.close()
        window.deleteLater()
        qtbot.wait(1)
    if raised:
        raise raised[0][1]


@pytest.mark.slow
def test_damaged_files_are_read_as_far_as_possible() -> None:
    check_cases(short(200), files, read_all)


@pytest.mark.slow
def test_a_window_opens_over_damaged_files(qtbot: QtBot) -> None:
    check_cases(short(5), files, lambda damages: start(qtbot, damages))


@pytest.mark.fuzz
def test_many_damaged_files_are_read_as_far_as_possible() -> None:
    check_cases(long(0.2), files, read_all)


@pytest.mark.fuzz
def test_many_windows_open_over_damaged_files(qtbot: QtBot) -> None:
    check_cases(long(0.03), files, lambda damages: start(qtbot, damages))
