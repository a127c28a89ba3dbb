"""Settings: a round trip, and unreadable parts are repaired and reported."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from decodescope.app.storage import settings as sections
from decodescope.app.storage.json_files import StorageError
from decodescope.app.storage.settings import SECTIONS, SettingsSection
from decodescope.app.storage.settings_file import SettingsStore


def write(folder: Path, data: Any) -> SettingsStore:
    (folder / "settings.json").write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    store = SettingsStore(folder)
    store.load()
    return store


def test_missing_file_gives_defaults(config_dir: Path) -> None:
    store = SettingsStore(config_dir)
    assert store.load().appearance.theme == "system"
    assert store.notices == []


def test_saved_settings_are_loaded_unchanged(config_dir: Path) -> None:
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


BROKEN = ["{not json", "[1, 2]", "\xff\xfe", "[" * 100_000, '{"a":' * 900 + "1" + "}" * 900, "9" * 5000, ""]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_unreadable_file_is_set_aside_and_reported(config_dir: Path, text: str) -> None:
    store = write(config_dir, text)
    assert store.settings.appearance.font_scale == 1.0
    aside = config_dir / "settings.json.bad-1"
    assert aside.read_text(encoding="utf-8") == text
    assert aside.name in store.notices[0]
    assert not store.path.exists()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_pipe_folder_or_device_as_settings_file_is_set_aside(config_dir: Path, make: Callable[[Path], None]) -> None:
    make(config_dir / "settings.json")
    store = SettingsStore(config_dir)
    assert store.load().appearance.font_scale == 1.0
    assert "settings.json.bad-1" in store.notices[0]
    store.save()
    assert SettingsStore(config_dir).load() == store.settings


def test_config_folder_that_is_file_raises_storage_error(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("in the way", encoding="utf-8")
    store = SettingsStore(tmp_path / "config")
    store.load()
    with pytest.raises(StorageError, match="cannot be written"):
        store.save()


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
        ("appearance", "theme", ["dark"]),
        ("appearance", "font_scale", math.inf),
        ("appearance", "font_scale", math.nan),
        ("choices", "seed", 2**31),
        pytest.param("choices", "seed", 10**400, id="a seed of 400 digits"),
        pytest.param("choices", "prompt", "half a \ud83d", id="half a character"),
        ("choices", "model", "a\0b"),
        ("choices", "drafts", "storyteller"),
        ("compute", "threads", 1.5),
        ("layout", "window", 5),
        ("layout", "window", "ä"),
        ("layout", "sides", [300]),
    ],
)
def test_invalid_key_is_reset_alone(config_dir: Path, section: str, key: str, bad: Any) -> None:
    data = {"choices": {"version": 2, "chat": True}}
    data.setdefault(section, {"version": 1})[key] = bad
    store = write(config_dir, data)
    assert getattr(getattr(store.settings, section), key) == getattr(SECTIONS[section](), key)
    assert store.settings.choices.chat
    assert f"{section}.{key}" in store.notices[0]
    assert (config_dir / "settings.json.bad-1").read_text(encoding="utf-8") == json.dumps(data)


def test_section_of_wrong_type_is_reset_and_reported(config_dir: Path) -> None:
    store = write(config_dir, {"appearance": 7, "choices": {"version": 1, "seed": 5}})
    assert store.settings.choices.seed == 5
    assert "appearance" in store.notices[0]


@pytest.mark.parametrize("version", ["1e999", '"two"', "-1", "true", "[]", "1.5", "null"])
def test_invalid_version_resets_only_its_section(config_dir: Path, version: str) -> None:
    store = write(config_dir, f'{{"appearance": {{"version": {version}, "theme": "dark"}}, "choices": {{"seed": 5}}}}')
    assert (store.settings.appearance.theme, store.settings.choices.seed) == ("system", 5)
    assert "appearance (its version is not a number)" in store.notices[0]


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"values": {"sampling": {"top_k": "many", "top_p": 0.5}}}, "values.sampling.top_k"),
        ({"values": {"sampling": {"top_k": 2**31, "top_p": 0.5}}}, "values.sampling.top_k"),
        ({"values": {"sampling": {"temperature": math.inf, "top_p": 0.5}}}, "values.sampling.temperature"),
        ({"values": {"sampling": {"bad_words_ids": [[[[[1]]]]], "top_p": 0.5}}}, "values.sampling.bad_words_ids"),
        ({"values": {"sampling": {"top_p": 0.5}}, "cache_values": {"quantized": {"nbits": "four"}}}, "quantized.nbits"),
    ],
)
def test_invalid_remembered_parameters_are_dropped_individually(
    config_dir: Path, values: dict[str, Any], place: str
) -> None:
    store = write(config_dir, {"choices": {"version": 2, **values}})
    store.drop_invalid_values()
    assert store.settings.choices.values == {"sampling": {"top_p": 0.5}}
    assert not any(store.settings.choices.cache_values.values())
    assert place in store.notices[0]
    assert "settings.json.bad-1" in store.notices[0]


def test_file_of_newer_version_is_copied_unchanged(config_dir: Path) -> None:
    text = '{"choices": {"version": 99, "seed": 5,   "dice": "blue"}}'
    store = write(config_dir, text)
    assert store.settings.choices.seed == 5
    assert "written by a newer version of Decodescope" in store.notices[0]
    store.save()
    assert (config_dir / "settings.json.newer-1").read_text(encoding="utf-8") == text
    assert json.loads(store.path.read_text(encoding="utf-8"))["choices"]["dice"] == "blue"


def test_migration_keeps_copy_of_old_file(config_dir: Path) -> None:
    text = '{"choices": {"version": 1, "draft": "little",  "seed": 5}}'
    store = write(config_dir, text)
    assert store.settings.choices.drafts == ["little"]
    assert (config_dir / "settings.json.old-1").read_text(encoding="utf-8") == text
    store.save()
    assert SettingsStore(config_dir).load() == store.settings
    assert not (config_dir / "settings.json.old-2").exists()


def test_failed_migration_keeps_file_unchanged(config_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_migration(data: dict[str, Any]) -> dict[str, Any]:
        return {"seed": data["no such key"]}

    monkeypatch.setattr(sections.LastChoices, "migrators", {1: fail_migration})
    text = '{"choices": {"version": 1, "seed": 5},  "appearance": {"theme": "dark"}}'
    store = write(config_dir, text)
    assert (store.settings.choices.seed, store.settings.appearance.theme) == (42, "dark")
    assert store.path.read_text(encoding="utf-8") == text
    assert (config_dir / "settings.json.bad-1").read_text(encoding="utf-8") == text


def test_identical_invalid_file_is_copied_once(config_dir: Path) -> None:
    for _ in range(3):
        write(config_dir, {"appearance": {"theme": "pink"}})
    write(config_dir, {"appearance": {"theme": "grey"}})
    assert sorted(path.name for path in config_dir.glob("*.bad-*")) == ["settings.json.bad-1", "settings.json.bad-2"]


def test_migrators_run_in_order() -> None:
    from dataclasses import dataclass, field

    @dataclass(slots=True)
    class Third(SettingsSection):
        version: ClassVar[int] = 3
        migrators: ClassVar[Any] = {
            1: lambda data: {"middle": data["old"]},
            2: lambda data: {"new": data["middle"] + "!"},
        }
        new: str = field(default="", metadata={"check": lambda value: isinstance(value, str)})

    assert Third.read({"version": 1, "old": "hello"})[0].new == "hello!"
    assert Third.read({"version": 3, "new": "hello"})[0].new == "hello"
    assert Third("x").write() == {"version": 3, "new": "x"}


def test_every_section_survives_round_trip() -> None:
    for section in SECTIONS.values():
        assert section.read(section().write()) == (section(), [])
