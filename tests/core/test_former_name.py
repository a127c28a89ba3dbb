"""Files written under the name Tokenscope still work under the name Decodescope."""

import os
import warnings
from pathlib import Path

import pytest

import core
from core.common import former_name
from core.common.former_name import adopt_folders, adopt_variables, describe_adoption, read_variable, user_folder
from tests.core import tiny as models


@pytest.fixture
def homes(tmp_path, monkeypatch) -> Path:
    """Empty user folders below `tmp_path`: config/ and data/."""
    for kind in ("config", "data"):
        monkeypatch.setattr(
            f"platformdirs.user_{kind}_dir", lambda name, appauthor=None, kind=kind: str(tmp_path / kind / name)
        )
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fill(homes: Path) -> None:
    config, runs = homes / "config" / "tokenscope", homes / "data" / "tokenscope" / "history" / "traces"
    config.mkdir(parents=True)
    runs.mkdir(parents=True)
    (config / "settings.json").write_text("{}")
    (config / ".lock").touch()
    (runs / f"{1:032x}.tokenscope").write_bytes(b"run")
    (runs.parent / "history.sqlite").write_bytes(b"rows")
    (runs.parent / "history.sqlite-shm").write_bytes(b"shared")
    os.mkfifo(runs / "pipe") if hasattr(os, "mkfifo") else None


def test_folders_are_copied_once_and_left_untouched(homes):
    fill(homes)
    before = contents(homes)
    assert [(each.source.parent.name, each.problem) for each in adopt_folders()] == [("config", ""), ("data", "")]
    assert contents(user_folder("config")) == {"settings.json": b"{}"}
    assert contents(user_folder("data")) == {
        f"history/traces/{1:032x}.decodescope": b"run",
        "history/history.sqlite": b"rows",
    }
    assert {name: data for name, data in contents(homes).items() if "/tokenscope/" in name} == before
    (user_folder("config") / "settings.json").write_text('{"changed": 1}')
    assert adopt_folders() == []
    assert describe_adoption([]) == []
    assert (user_folder("config") / "settings.json").read_text() == '{"changed": 1}'


def test_existing_folder_is_never_replaced(homes):
    fill(homes)
    user_folder("config").mkdir(parents=True)
    assert [each.target for each in adopt_folders()] == [user_folder("data")]
    assert contents(user_folder("config")) == {}


def test_failed_copy_leaves_nothing_and_says_why(homes, monkeypatch):
    fill(homes)

    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(former_name.shutil, "copytree", full)
    found = adopt_folders()
    assert [each.problem for each in found] == ["No space left on device"] * 2
    sentences = describe_adoption(found)
    assert len(sentences) == 2
    assert all(
        "could not be copied" in words and str(each.target) in words
        for words, each in zip(sentences, found, strict=True)
    )
    assert not user_folder("config").exists()
    assert not list((homes / "config").glob(".decodescope*"))


def test_copy_of_a_killed_start_is_made_again(homes):
    fill(homes)
    abandoned = homes / "config" / f".decodescope-copy-{2**22 + 1}"
    abandoned.mkdir()
    assert len(adopt_folders()) == 2
    assert not abandoned.exists()


def test_variables_are_adopted_with_a_notice():
    environment = {"TOKENSCOPE_API_KEY": "a", "TOKENSCOPE_FUZZ": "5", "DECODESCOPE_FUZZ": "6", "OTHER": "b"}
    (notice,) = adopt_variables(environment)
    assert "TOKENSCOPE_API_KEY is now called DECODESCOPE_API_KEY" in notice
    assert environment["DECODESCOPE_API_KEY"] == "a"
    assert environment["DECODESCOPE_FUZZ"] == "6"


def test_variable_of_the_former_name_is_read_with_a_warning(monkeypatch):
    monkeypatch.setenv("TOKENSCOPE_API_KEY", "old")
    with pytest.warns(FutureWarning, match="now called DECODESCOPE_API_KEY"):
        assert read_variable("DECODESCOPE_API_KEY") == "old"
    monkeypatch.setenv("DECODESCOPE_API_KEY", "new")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_variable("DECODESCOPE_API_KEY") == "new"


def test_error_class_has_its_former_name():
    assert core.errors.TokenscopeError is core.errors.DecodescopeError


def test_recording_with_the_former_suffix_is_read(tmp_path):
    request = core.Request(models.prompt(), {"max_new_tokens": 2})
    path = tmp_path / "run.tokenscope"
    written = list(core.record(path, core.stream(models.shared("llama"), request), request))
    assert list(core.replay(path)) == written
