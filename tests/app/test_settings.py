"""Settings: what is written is read back, and what cannot be read is repaired and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.storage.settings import SECTIONS, Section
from app.storage.settings_file import SettingsStore


def write(folder: Path, data: Any) -> SettingsStore:
    (folder / "settings.json").write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    store = SettingsStore(folder)
    store.load()
    return store


def test_defaults_without_a_file(config_dir: Path) -> None:
    store = SettingsStore(config_dir)
    assert store.load().appearance.theme == "system"
    assert store.notices == []


def test_round_trip(config_dir: Path) -> None:
    store = SettingsStore(config_dir)
    settings = store.load()
    settings.appearance.theme, settings.appearance.font_scale = "dark", 1.5
    settings.choices.values = {"sampling": {"temperature": 0.7}}
    settings.models.allow_pickle.append("some/model")
    settings.choices.prompt = "Zwölf Boxkämpfer"
    store.save()
    again = SettingsStore(config_dir)
    assert again.load() == settings
    assert again.notices == []


def test_unknown_sections_of_a_newer_program_survive(config_dir: Path) -> None:
    store = write(config_dir, {"future": {"version": 3, "x": 1}})
    store.save()
    assert json.loads(store.path.read_text(encoding="utf-8"))["future"] == {"version": 3, "x": 1}


@pytest.mark.parametrize("text", ["{not json", "[1, 2]", "\xff\xfe"])
def test_a_broken_file_is_set_aside_and_named(config_dir: Path, text: str) -> None:
    store = write(config_dir, text)
    assert store.settings.appearance.font_scale == 1.0
    (aside,) = config_dir.glob("settings.broken-*.json")
    assert aside.read_text(encoding="utf-8") == text
    assert aside.name in store.notices[0]
    assert not store.path.exists()


@pytest.mark.parametrize(
    ("section", "key", "bad"),
    [
        ("appearance", "font_scale", 9),
        ("appearance", "font_scale", True),
        ("appearance", "theme", "pink"),
        ("choices", "seed", -1),
        ("choices", "values", {"sampling": 3}),
        ("compute", "top_n", "many"),
        ("models", "folders", [1]),
    ],
)
def test_a_bad_key_is_reset_alone(config_dir: Path, section: str, key: str, bad: Any) -> None:
    data = {"choices": {"version": 1, "prompt": "kept"}}
    data.setdefault(section, {"version": 1})[key] = bad
    store = write(config_dir, data)
    assert getattr(getattr(store.settings, section), key) == getattr(SECTIONS[section](), key)
    assert store.settings.choices.prompt == "kept"
    assert f"{section}.{key}" in store.notices[0]


def test_a_section_that_is_no_section(config_dir: Path) -> None:
    store = write(config_dir, {"appearance": 7, "choices": {"version": 1, "seed": 5}})
    assert store.settings.choices.seed == 5
    assert "appearance" in store.notices[0]


def test_migrators_run_in_order() -> None:
    from dataclasses import dataclass, field

    @dataclass(slots=True)
    class Third(Section):
        version: ClassVar[int] = 3
        migrators: ClassVar[Any] = {
            1: lambda data: {"middle": data["old"]},
            2: lambda data: {"new": data["middle"] + "!"},
        }
        new: str = field(default="", metadata={"check": lambda value: isinstance(value, str)})

    assert Third.read({"version": 1, "old": "hello"})[0].new == "hello!"
    assert Third.read({"version": 3, "new": "hello"})[0].new == "hello"
    assert Third("x").write() == {"version": 3, "new": "x"}


def test_every_section_reads_what_it_writes() -> None:
    for section in SECTIONS.values():
        assert section.read(section().write()) == (section(), [])
