"""Model files that change while their weights are mapped into memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.core.errors import CorruptWeightsError
from decodescope.core.models.mapped_files import MappedFiles
from decodescope.core.models.model_saving import save_gguf
from tests.core import gguf_models

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows refuses to shorten a mapped file")

REQUEST = core.Request("a b", {"max_new_tokens": 3, "do_sample": False})
SCRIPT = """
import os, sys
from pathlib import Path
from decodescope import core
from decodescope.core.errors import CorruptWeightsError

request = core.Request("a b", {"max_new_tokens": 3, "do_sample": False})
for file, name, weights in zip(*[iter(sys.argv[1:])] * 3):
    model = core.load(name, device="cpu", weights=weights)
    events = core.stream(model, core.Request("a b", {"max_new_tokens": 40, "do_sample": False, "eos_token_id": 10**6}))
    while type(next(events)).__name__ != "TokenChosen":
        pass
    os.truncate(file, 4096)
    for use in (lambda: list(events), lambda: core.run(model, request), lambda: core.save_gguf(model, name + ".new")):
        try:
            use()
        except CorruptWeightsError as error:
            print(error.cause)
        else:
            print("no error")
"""


@pytest.mark.slow
def test_shortened_files_are_errors_and_not_crashes(tmp_path: Path) -> None:
    """In another process, which a missing page would end by a signal."""
    model = gguf_models.make("llama", hidden_size=256, intermediate_size=1024)
    folder, arguments = tmp_path / "model", list[str]()
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    arguments += [str(folder / "model.safetensors"), str(folder), "float32"]
    for kind in ("Q8_0", "F32"):
        file = str(save_gguf(model, tmp_path / f"{kind}.gguf", kind))
        arguments += [file, file, "auto"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(core.__file__).parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    names = ("model.safetensors", "Q8_0.gguf", "F32.gguf")
    assert len(lines) == 3 * len(names)
    for line, name in zip(lines, (name for name in names for _ in range(3)), strict=True):
        assert line.startswith(f"{name} was shortened to 4,096 of ")


def test_writing_to_a_mapped_file_ends_the_run(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("settings", [{}, {"num_beams": 2}, {"penalty_alpha": 0.6, "top_k": 3}], ids=str)
def test_change_during_a_run_ends_it_and_keeps_the_text(settings: dict[str, Any], tmp_path: Path) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    config = {"max_new_tokens": 40, "min_new_tokens": 40, "do_sample": False, **settings}
    events = core.stream(core.load(path, device="cpu"), core.Request("a b", config))
    found = [next(events) for _ in range(6)]
    os.utime(path, ns=(1, 1))
    with pytest.raises(CorruptWeightsError, match="was written to"):
        found.extend(events)
    assert len(found) < 40


@pytest.mark.parametrize("change", ["replace", "delete"])
def test_replaced_or_deleted_file_keeps_the_mapped_weights(change: str, tmp_path: Path) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "tiny.gguf", "Q8_0")
    model = core.load(path, device="cpu")
    expected = core.run(model, REQUEST).texts
    if change == "replace":
        (tmp_path / "other.gguf").write_bytes(b"short")
        (tmp_path / "other.gguf").replace(path)
    else:
        path.unlink()
    assert core.run(model, REQUEST).texts == expected


def test_copied_weights_do_not_depend_on_their_file(tmp_path: Path) -> None:
    model = gguf_models.make("llama")
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    for weights in ("int8", "bfloat16"):
        loaded = core.load(tmp_path, device="cpu", weights=weights)
        assert loaded.mapped_files is None
    assert core.load(tmp_path, device="cpu", weights="float32").mapped_files is not None


def test_open_files_are_closed_with_their_model(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    files = MappedFiles([tmp_path / "file", tmp_path / "missing"])
    (descriptor,) = (file.descriptor for file in files._files)
    os.fstat(descriptor)
    del files
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
