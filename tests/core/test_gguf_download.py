"""Repositories of GGUF files on the hub: one of their models is chosen, judged, downloaded, verified and deleted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest

from decodescope import core
from decodescope.core import errors
from decodescope.core.catalog import download_store, file_download, hub_requests
from decodescope.core.models.gguf import file_names
from decodescope.core.models.model_saving import save_gguf
from tests import fake_hub
from tests.core import gguf_models
from tests.core.gguf_split import split
from tests.fake_hub import Hub

NAME = "someone/Tiny-Tales-GGUF"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A repository as people upload them: several formats, one split, a projector, and a file of their own."""
    folder, model = tmp_path_factory.mktemp("gguf"), gguf_models.make("llama")
    whole = {kind: save_gguf(model, folder / f"Tiny-Tales-{kind}.gguf", kind).read_bytes() for kind in ("Q8_0", "F16")}
    parts = folder / "parts"
    parts.mkdir()
    first = split(folder / "Tiny-Tales-F16.gguf", parts)
    second = first.with_name(first.name.replace("00001-of", "00002-of"))
    return {
        "Tiny-Tales-Q8_0.gguf": whole["Q8_0"], "Tiny-Tales-F16.gguf": whole["F16"],
        "F32/Tiny-Tales-00001-of-00002.gguf": first.read_bytes(),
        "F32/Tiny-Tales-00002-of-00002.gguf": second.read_bytes(),
        "lost-Q4_K_M-00001-of-00002.gguf": b"x", "mmproj-Tiny-Tales-F16.gguf": b"x", "imatrix.gguf": b"x",
        "config.json": b"{}", "LICENSE": b"free", "README.md": b"# Tiny",
    }  # fmt: skip


@pytest.fixture
def hub(files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with fake_hub.running() as running:
        running.put(NAME, dict(files))
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(file_download, "RETRY_DELAYS", (0.0, 0.0))
        monkeypatch.setattr(hub_requests, "DEFAULT_WAIT_SECONDS", 0.0)
        monkeypatch.setattr(file_download, "_REPORT_INTERVAL", 0.0)
        yield running


def on_disk() -> dict[str, str | None]:
    return {name: entry.problem for name, entry in core.catalog.hub_gguf()}


def test_the_models_of_a_repository_are_offered_with_bits_size_and_fit(hub: Hub, files: dict[str, bytes]) -> None:
    (model,) = core.catalog.search("tales")
    assert [(one.key, one.format_name, one.bits, len(one.files)) for one in model.variants] == [
        ("Tiny-Tales-Q8_0", "Q8_0", 8, 1), ("Tiny-Tales-F16", "F16", 16, 1), ("F32--Tiny-Tales", "F32", 32, 2),
    ]  # fmt: skip
    assert [one.size for one in model.variants][:2] == [
        len(files[f"Tiny-Tales-{kind}.gguf"]) for kind in ("Q8_0", "F16")
    ]
    assert all(one.fits and one.needed > one.size for one in model.variants)
    assert (model.judged, model.fits, model.why_not) == (True, True, "")
    assert model.architecture.startswith("Llama · ")
    assert model.variant == "F32--Tiny-Tales", "no file has the usual format: the largest that fits is offered"
    assert {file.path for file in model.files} == {"LICENSE", *(file.path for file in model.variants[2].files)}
    other = model.with_variant("q8_0")
    assert other.download_name == f"{NAME}:Tiny-Tales-Q8_0"
    assert other.size == len(files["Tiny-Tales-Q8_0.gguf"]) + len(b"free")
    assert "Tiny-Tales-F16.gguf" in other.left_out
    assert "Tiny-Tales-Q8_0.gguf" not in other.left_out
    assert model.with_variant("Q2_K") is model


def test_largest_fitting_variant_is_the_default(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    smallest, middle, _largest = core.catalog.look(NAME).variants
    monkeypatch.setattr("decodescope.core.catalog.model_search.cache_bytes", lambda *_sizes: 0)
    monkeypatch.setattr("decodescope.core.models.model_entry.free_memory", lambda: int(1.2 * middle.size))
    model = core.catalog.judge(core.catalog.look(NAME))
    assert [one.fits for one in model.variants] == [True, True, False]
    assert model.variant == middle.key
    monkeypatch.setattr("decodescope.core.models.model_entry.free_memory", lambda: 10)
    model = core.catalog.judge(core.catalog.look(NAME))
    assert (model.variant, model.fits) == (smallest.key, False)
    assert model.why_not.endswith("does not fit")
    assert core.catalog.judge(core.catalog.look(f"{NAME}:F16")).variant == "Tiny-Tales-F16", "an explicit choice stays"


def test_judging_a_model_reads_the_header_of_one_file(hub: Hub) -> None:
    core.catalog.judge(core.catalog.look(NAME))
    assert [path.rpartition("/")[2] for path, _range, _token in hub.asked if "store" in path] == [
        "Tiny-Tales-Q8_0.gguf"
    ]


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + b"\xff" * 200, b"<html>" * 3000])
def test_non_gguf_file_is_refused_before_the_download(hub: Hub, content: bytes) -> None:
    hub.put("someone/broken", {"model-Q8_0.gguf": content})
    model = core.catalog.judge(core.catalog.look("someone/broken"))
    assert model.why_not
    assert not model.fits


def test_one_model_is_downloaded_listed_and_loaded(hub: Hub, files: dict[str, bytes]) -> None:
    place = core.catalog.download(f"{NAME}:Q8_0")
    assert sorted(file.name for file in place.iterdir()) == ["LICENSE", "Tiny-Tales-Q8_0.gguf"]
    assert on_disk() == {f"{NAME}:Tiny-Tales-Q8_0": None}
    entry = core.catalog.hub_entry(f"{NAME}:Q8_0")
    assert entry is not None
    assert entry in core.catalog.other_programs()
    assert (entry.source, entry.format_name) == ("Hugging Face", "Q8_0")
    assert core.catalog.hub_cached() == [], "it is no model in transformers format"
    loaded = core.load(f"{NAME}:Q8_0")
    assert loaded.path == place / "Tiny-Tales-Q8_0.gguf"
    assert core.load(entry.name).path == loaded.path
    hub.asked.clear()
    core.catalog.download(f"{NAME}:q8_0")
    assert not hub.sent("resolve"), "what is there was fetched again"
    with pytest.raises(errors.TransferError, match="has no GGUF model “Q2_K”") as error:
        core.catalog.download(f"{NAME}:Q2_K")
    assert "Q8_0, F16, F32" in error.value.remedy


def test_download_fetches_all_parts_of_a_split_model(hub: Hub) -> None:
    place = core.catalog.download(f"{NAME}:F32")
    assert sorted(file.name for file in (place / "F32").iterdir()) == [
        "Tiny-Tales-00001-of-00002.gguf", "Tiny-Tales-00002-of-00002.gguf",
    ]  # fmt: skip
    assert core.load(f"{NAME}:F32").parameters == gguf_models.make("llama").parameters
    (place / "F32" / "Tiny-Tales-00002-of-00002.gguf").unlink()
    assert on_disk() == {}


def test_paused_models_are_resumed_independently(hub: Hub, files: dict[str, bytes]) -> None:
    stop = threading.Event()
    for kind in ("Q8_0", "F16"):
        hub.models[NAME].cuts[f"Tiny-Tales-{kind}.gguf"] = [20_000]
        stop.clear()
        with pytest.raises(errors.DownloadStoppedError):
            core.catalog.download(f"{NAME}:{kind}", lambda now: now.done > 15_000 and stop.set(), stop=stop)
    waiting = core.catalog.unfinished()
    assert [one.name for one in waiting] == [f"{NAME}:Tiny-Tales-F16", f"{NAME}:Tiny-Tales-Q8_0"]
    assert all(0 < one.done < one.total for one in waiting)
    assert on_disk() == {}
    place = core.catalog.download(waiting[1].name)
    assert hub.sent("Q8_0")[-1].startswith("bytes=")
    assert (place / "Tiny-Tales-Q8_0.gguf").read_bytes() == files["Tiny-Tales-Q8_0.gguf"]
    assert core.catalog.unfinished() == waiting[:1], "the other one can still be resumed"
    freed = core.catalog.discard(waiting[0].name)
    assert freed >= waiting[0].done - len(b"free")
    assert core.catalog.unfinished() == ()
    assert on_disk() == {f"{NAME}:Tiny-Tales-Q8_0": None}
    assert core.load(f"{NAME}:Q8_0").parameters


def test_the_first_paused_model_can_be_discarded(hub: Hub, tmp_path: Path) -> None:
    hub.models[NAME].cuts["Tiny-Tales-F16.gguf"] = [20_000, *[0] * 9]
    with pytest.raises(errors.TransferError):
        core.catalog.download(f"{NAME}:F16")
    assert core.catalog.discard(f"{NAME}:Tiny-Tales-F16") > 0
    assert not list((tmp_path / "hub").glob("models--*"))


def test_damaged_part_is_found_and_downloaded_again(hub: Hub, files: dict[str, bytes]) -> None:
    place = core.catalog.download(f"{NAME}:F32")
    core.catalog.download(f"{NAME}:Q8_0")
    part = "F32/Tiny-Tales-00002-of-00002.gguf"
    blob = (place / part).resolve()
    blob.write_bytes(files[part][:-1] + b"!")
    assert core.catalog.verify(f"{NAME}:F32") == (part,)
    assert core.catalog.verify(f"{NAME}:Q8_0") == ()
    core.catalog.download(f"{NAME}:F32", again=(part,))
    assert core.catalog.verify(f"{NAME}:F32") == ()
    with pytest.raises(errors.ModelNotFoundError):
        core.catalog.verify(f"{NAME}:F16")


def test_content_with_a_wrong_digest_is_discarded(hub: Hub, files: dict[str, bytes]) -> None:
    hub.models[NAME].lies["Tiny-Tales-Q8_0.gguf"] = files["Tiny-Tales-Q8_0.gguf"][:-1] + b"!"
    with pytest.raises(errors.TransferError, match="digest"):
        core.catalog.download(f"{NAME}:Q8_0")
    assert on_disk() == {}


def test_deleting_one_model_keeps_the_others(hub: Hub, tmp_path: Path) -> None:
    for kind in ("Q8_0", "F16"):
        core.catalog.download(f"{NAME}:{kind}")
    assert core.catalog.delete(f"{NAME}:Q8_0") > 100_000
    assert on_disk() == {f"{NAME}:Tiny-Tales-F16": None}
    assert core.load(f"{NAME}:F16").parameters
    core.catalog.delete(f"{NAME}:Tiny-Tales-F16")
    assert on_disk() == {}
    assert not list((tmp_path / "hub").glob("models--*"))


def test_deleting_a_model_keeps_content_that_another_one_shares(hub: Hub, files: dict[str, bytes]) -> None:
    content = files["Tiny-Tales-Q8_0.gguf"]
    hub.put("someone/twins", {"one-Q8_0.gguf": content, "two-Q4_0.gguf": content})
    for name in ("one-Q8_0", "two-Q4_0"):
        core.catalog.download(f"someone/twins:{name}")
    core.catalog.delete("someone/twins:one-Q8_0")
    assert on_disk() == {"someone/twins:two-Q4_0": None}
    assert core.catalog.verify("someone/twins:two-Q4_0") == ()
    assert core.load("someone/twins:two-Q4_0")


def test_weights_in_both_formats_are_downloaded_as_named(hub: Hub, files: dict[str, bytes]) -> None:
    hub.put("someone/both", {**files, "model.safetensors": b"x" * 20_000})
    assert core.catalog.look("someone/both").variants == ()
    place = core.catalog.download("someone/both:Q8_0")
    assert not (place / "model.safetensors").exists()


@pytest.mark.parametrize("name", ["a/b:../../c", "a/b:c/d", "a/b:c\n", "a b:c", "a/b:c:d", "a/b:" + "x" * 300])
def test_invalid_names_are_refused_without_a_request(hub: Hub, name: str) -> None:
    with pytest.raises(errors.NotOnHubError):
        core.catalog.download(name)
    assert hub.asked == []


def test_malformed_manifest_is_ignored(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "hub" / "models--a--b"
    folder.mkdir(parents=True)
    (folder / "decodescope-x.json").write_text(json.dumps({"files": [{"path": 5}]}), encoding="utf-8")
    (folder / "decodescope-y.json").write_text("[", encoding="utf-8")
    assert core.catalog.unfinished() == ()
    assert download_store.DownloadStore("a/b:x").files_in_manifest() is None


def test_file_names_are_grouped_into_models() -> None:
    names = file_names.group_models([
        "b-IQ3_XXS.gguf", "UD-Q4_K_XL/m-00002-of-00002.gguf", "UD-Q4_K_XL/m-00001-of-00002.gguf", "c.Q5_K_M.GGUF",
        "model.gguf", "x-fp16.gguf", "y-MXFP4.gguf", "Qwen3-8B-BF16.gguf", "notes.txt", "mmproj-F16.gguf",
        "z-00003-of-00002.gguf", "w-00000-of-00001.gguf",
    ])  # fmt: skip
    assert {one.key: (one.format_name, one.bits, len(one.paths)) for one in names} == {
        "b-IQ3_XXS": ("IQ3_XXS", 3, 1), "UD-Q4_K_XL--m": ("Q4_K_XL", 4, 2), "c.Q5_K_M": ("Q5_K_M", 5, 1),
        "model": ("", None, 1), "x-fp16": ("FP16", 16, 1), "y-MXFP4": ("MXFP4", 4, 1),
        "Qwen3-8B-BF16": ("BF16", 16, 1),
    }  # fmt: skip
