"""A full disk: writers raise a clear error, keep the existing file, and leave no partial file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core import labs
from decodescope.core.errors import CacheError, DecodescopeError, FileNotWrittenError, TraceError
from decodescope.core.labs.preference import TrainingSaved, ranked
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.system.file_writing import temporary_folder
from tests.core import tiny as models
from tests.disks import full_disk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files there have no limit")
REQUEST = core.Request(models.prompt(), {"max_new_tokens": 4})
RANKINGS = [ranked([f"{name} played.", f"{name} slept."]) for name in ("Fern", "Max", "Mia", "Leo", "Tom", "Sam")]
ENDINGS = {"page": "html", "prefix": "safetensors", "rankings": "jsonl", "pairs": "jsonl"}


def _page(model: LoadedModel, path: Path) -> object:
    return core.page(core.stream(model, REQUEST), path)


def _prefix(model: LoadedModel, path: Path) -> object:
    store = core.PrefixStore()
    core.run(model, REQUEST, prefixes=store)
    return store.save(path, model)


def _rankings(_model: LoadedModel, path: Path) -> object:
    return labs.preference.write_rankings(path, RANKINGS)


def _pairs(_model: LoadedModel, path: Path) -> object:
    return labs.preference.write_pairs(path, RANKINGS)


@pytest.mark.parametrize("room", [0, 20])
@pytest.mark.parametrize("write", [_page, _prefix, _rankings, _pairs])
def test_failed_write_keeps_the_existing_file(
    tmp_path: Path, write: Callable[[LoadedModel, Path], object], room: int
) -> None:
    path, model = tmp_path / f"it.{ENDINGS[write.__name__.strip('_')]}", models.shared("llama")
    path.write_text("what stood there")
    with full_disk(room), pytest.raises((CacheError, FileNotWrittenError), match="the file is too large"):
        write(model, path)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["what stood there"]
    write(model, path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size > 20


@pytest.mark.parametrize("room", [0, 10])
def test_recording_that_cannot_start_leaves_no_open_file(tmp_path: Path, room: int) -> None:
    """An unclosed file is an error in these tests."""
    with full_disk(room), pytest.raises(TraceError, match="the file is too large"):
        list(core.record(tmp_path / "run.decodescope", core.stream(models.shared("llama"), REQUEST), REQUEST))


@pytest.mark.parametrize("room", [0, 3000])
@pytest.mark.parametrize("stage", ["reward", "sft"])
def test_failed_training_leaves_no_partial_model_and_can_resume(
    tiny: LoadedModel, tmp_path: Path, stage: str, room: int
) -> None:
    def train() -> list[labs.preference.LabEvent]:
        if stage == "reward":
            return list(labs.preference.train_reward(RANKINGS, model=tiny, folder=tmp_path, steps=1))
        return list(labs.preference.sft(model=tiny, folder=tmp_path, steps=1))

    with full_disk(room), pytest.raises(FileNotWrittenError):
        train()
    assert list(tmp_path.iterdir()) == []
    assert isinstance(train()[-1], TrainingSaved)
    assert (tmp_path / "model.safetensors").is_file()
    assert (tmp_path / "config.json").is_file()


def test_offloaded_cache_on_a_full_disk_raises_an_error(tmp_path: Path) -> None:
    options = {"place": "disk", "folder": str(tmp_path)}
    request = core.Request(models.prompt(), {"max_new_tokens": 4}, cache="offloaded", cache_options=options)
    with full_disk(), pytest.raises(DecodescopeError, match="on the disk of"):
        core.run(models.shared("llama"), request)
    assert list(tmp_path.rglob("*.cache")) == []


def test_full_temporary_folder_raises_file_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither creating the folder nor writing into it is possible."""
    with (
        full_disk(),
        pytest.raises(FileNotWrittenError, match="No temporary files can be written: the file is too large"),
    ):
        with temporary_folder() as folder:
            (folder / "it").write_text("too much")
    assert not folder.exists()
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with pytest.raises(FileNotWrittenError, match="set TMPDIR to a folder with free space"), temporary_folder():
        pass


def test_other_errors_in_a_temporary_folder_pass_through() -> None:
    with pytest.raises(FileNotFoundError), temporary_folder() as folder:
        (folder / "nowhere").read_text()


def test_replaced_file_keeps_its_mode_and_symbolic_link(tmp_path: Path) -> None:
    file, link = tmp_path / "it.html", tmp_path / "link.html"
    file.write_text("before")
    file.chmod(0o600)
    link.symlink_to(file)
    core.page(core.stream(models.shared("llama"), REQUEST), link)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() != "before"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no such device")
def test_writing_to_a_full_device_raises_and_keeps_the_device(tmp_path: Path) -> None:
    link = tmp_path / "full.html"
    link.symlink_to("/dev/full")
    with pytest.raises(FileNotWrittenError, match="no space left on the disk"):
        core.page(core.stream(models.shared("llama"), REQUEST), link)
    assert Path("/dev/full").is_char_device()
    assert list(tmp_path.iterdir()) == [link]
