"""The hub cache: complete models are listed, damaged ones are reported and affect no others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from decodescope import core
from decodescope.core.errors import ModelNotFoundError
from decodescope.core.models import catalog
from tests.core import tiny

FIRST, SECOND = "a" * 40, "b" * 40


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "model"
    tiny.make("llama").model.save_pretrained(folder)
    return folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def put(hub: Path, name: str, good: Path, commit: str = FIRST, main: bool = True) -> Path:
    """A repository as the library lays it out: blobs, and links to them."""
    repository = hub / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / commit
    (repository / "blobs").mkdir(parents=True, exist_ok=True)
    snapshot.mkdir(parents=True)
    for file in good.iterdir():
        shutil.copy(file, repository / "blobs" / f"{commit}-{file.name}")
        (snapshot / file.name).symlink_to(Path("../../blobs") / f"{commit}-{file.name}")
    if main:
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / "main").write_text(commit)
    return repository


def listed() -> dict[str, str | None]:
    return {entry.name: entry.problem for entry in catalog.hub_cached()}


def test_snapshot_of_main_is_used(hub: Path, good: Path) -> None:
    put(hub, "some/model", good, FIRST, main=True)
    put(hub, "some/model", good, SECOND, main=False)
    put(hub, "other/model", good, SECOND, main=False)
    assert listed() == {"other/model": None, "some/model": None}
    assert catalog.locate("some/model").name == FIRST
    assert catalog.locate("some/model").is_relative_to(hub)
    assert core.load("other/model").name == "other/model"


def no_snapshots(repository: Path) -> None:
    shutil.rmtree(repository / "snapshots")


def lost_blob(repository: Path) -> None:
    next((repository / "blobs").glob("*.safetensors")).unlink()


def folder_for_main(repository: Path) -> None:
    (repository / "refs" / "main").unlink()
    (repository / "refs" / "main").mkdir()


def pipe_for_main(repository: Path) -> None:
    (repository / "refs" / "main").unlink()
    os.mkfifo(repository / "refs" / "main")


def no_text_for_main(repository: Path) -> None:
    (repository / "refs" / "main").write_bytes(b"\xff\xfe")


def huge_main(repository: Path) -> None:
    (repository / "refs" / "main").write_text("a" * 100_000)


def file_for_a_repository(repository: Path) -> None:
    shutil.rmtree(repository)
    repository.write_text("x")


def file_among_snapshots(repository: Path) -> None:
    (repository / "snapshots" / "c").write_text("x")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [(no_snapshots, True), (lost_blob, True), (folder_for_main, False), (pipe_for_main, True), (no_text_for_main, True),
     (huge_main, True), (file_for_a_repository, True), (file_among_snapshots, False)],
)  # fmt: skip
def test_damaged_repository_is_reported_and_others_are_listed(
    damage: Callable[[Path], None], problem: bool, hub: Path, good: Path
) -> None:
    for name in ("first/one", "hurt/one", "last/one"):
        put(hub, name, good)
    damage(hub / "models--hurt--one")
    found = listed()
    assert list(found) == ["first/one", "hurt/one", "last/one"]
    assert (found["first/one"], found["last/one"]) == (None, None)
    assert bool(found["hurt/one"]) == problem
    if problem:
        with pytest.raises(ModelNotFoundError, match="download it again"):
            core.load("hurt/one")


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": [5]},
        {"architectures": None},
        {"architectures": 5},
        {"architectures": ["BertForMaskedLM"]},
        {},
        {"architectures": ["WhisperForConditionalGeneration"], "num_mel_bins": 80},
    ],
)
def test_only_text_generation_models_are_listed(config: dict[str, Any], hub: Path, good: Path) -> None:
    snapshot = put(hub, "some/model", good) / "snapshots" / FIRST
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").write_text(json.dumps(config))
    (hub / "datasets--x--y").mkdir()
    (hub / ".locks").mkdir()
    (hub / "models--empty--one" / "snapshots").mkdir(parents=True)
    assert listed() == {}


def test_index_without_a_weight_map_is_reported(hub: Path, good: Path) -> None:
    snapshot = put(hub, "some/model", good) / "snapshots" / FIRST
    (snapshot / "model.safetensors.index.json").write_text("{}")
    assert listed() == {"some/model": None}, "one file with all weights needs no index, as in transformers"
    assert core.load("some/model").name == "some/model"
    (snapshot / "model.safetensors").unlink()
    assert "weight_map" in (listed()["some/model"] or "")


UNNEEDED = ("README.md", "onnx/model.onnx", "pytorch_model.bin", "tf_model.h5", "original/config.json", "photo.jpg")
NEEDED = ("config.json", "tokenizer.json", "tokenizer.model", "chat_template.jinja", "modeling_own.py", "merges.txt")


@pytest.mark.parametrize("name", [*UNNEEDED, *NEEDED, "model.safetensors"])
def test_link_to_missing_content_refuses_a_model_only_for_a_file_that_is_read(name: str, hub: Path, good: Path) -> None:
    snapshot = put(hub, "some/model", good) / "snapshots" / FIRST
    (snapshot / name).parent.mkdir(exist_ok=True)
    (snapshot / name).unlink(missing_ok=True)
    (snapshot / name).symlink_to(snapshot / "nowhere")
    if name in UNNEEDED:
        assert listed() == {"some/model": None}
        assert core.load("some/model").name == "some/model"
    else:
        assert f"the content of {name} is missing" in (listed()["some/model"] or "")
        with pytest.raises(ModelNotFoundError, match="download it again"):
            core.load("some/model")


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
@pytest.mark.parametrize("value", ["$DRIVE/hf", "${DRIVE}/hf", "~/hf", "$UNSET/hf", "~/$DRIVE"])
def test_cache_folder_is_that_of_the_library(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "UNSET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DRIVE", "tmp/some drive")
    monkeypatch.setenv(variable, value)
    source = Path(huggingface_hub.constants.__file__)
    library: dict[str, Any] = {"__name__": "huggingface_hub.constants", "__package__": "huggingface_hub"}
    exec(compile(source.read_text(), str(source), "exec"), library)  # the module reads the variables once
    assert str(catalog.hub_cache()) == library["HF_HUB_CACHE"]


@pytest.mark.parametrize("place", ["", "file", "nowhere"])
def test_missing_cache_folder_lists_no_models(place: str, hub: Path) -> None:
    if place == "file":
        hub.write_text("x")
    elif place == "":
        hub.mkdir()
    assert listed() == {}


def test_empty_cache_needs_no_import(hub: Path) -> None:
    code = (
        "import sys; from decodescope.core.models import catalog; "
        "catalog.available(); sys.exit('huggingface_hub' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
