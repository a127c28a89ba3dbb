"""Without native code, the blocks of a GGUF file are unpacked to floats when it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from decodescope import core
from decodescope.core.events import Notice
from decodescope.core.models import devices
from decodescope.core.models.model_saving import save_gguf
from tests.core import gguf_models

REQUEST = core.Request(gguf_models.PROMPT, {"max_new_tokens": 8, "do_sample": False})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_gguf(gguf_models.make("llama"), tmp_path_factory.mktemp("gguf") / "small.gguf", "Q4_0")


@pytest.fixture
def unpacking(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let blocks be unpacked on this machine, without native code and with 8 GiB of free memory."""
    monkeypatch.setenv(devices.UNPACK_VARIABLE, "1")
    monkeypatch.setattr(devices, "library", lambda: None)
    monkeypatch.setattr(devices, "free_memory", lambda: 8 << 30)
    return monkeypatch


def unpacked_notices(model: core.LoadedModel) -> list[str]:
    events = core.run(model, REQUEST).events
    return [event.message for event in events if isinstance(event, Notice) and event.kind == "weights_unpacked"]


def test_blocks_unpack_to_the_same_numbers_without_native_code(file: Path, unpacking: pytest.MonkeyPatch) -> None:
    model = core.load(file, device="cpu")
    assert (model.weights, model.unpacked_format) == ("float32", "Q4_0")
    unpacking.setenv(devices.UNPACK_VARIABLE, "0")
    blocks = core.load(file, device="cpu")
    assert (blocks.weights, blocks.unpacked_format) == ("Q4_0", "")
    assert (gguf_models.logits(model) - gguf_models.logits(blocks)).abs().max() < 1e-5
    assert core.run(model, REQUEST).sequences == core.run(blocks, REQUEST).sequences


@pytest.mark.usefixtures("unpacking")
def test_first_run_says_that_weights_are_unpacked(file: Path) -> None:
    model = core.load(file, device="cpu")
    (notice,) = unpacked_notices(model)
    assert "Q4_0" in notice
    assert "float32" in notice
    assert unpacked_notices(model) == []


def test_blocks_stay_packed_with_native_code(file: Path, unpacking: pytest.MonkeyPatch) -> None:
    unpacking.setattr(devices, "library", object)
    assert core.load(file, device="cpu").weights == "Q4_0"


def test_chosen_dtype_follows_free_memory(file: Path, unpacking: pytest.MonkeyPatch) -> None:
    numbers = core.load(file, weights="float32", device="cpu").parameters
    for free, weights in ((8 * numbers, "float32"), (5 * numbers, "bfloat16"), (3 * numbers, "Q4_0")):
        unpacking.setattr(devices, "free_memory", lambda free=free: free)
        assert core.load(file, device="cpu").weights == weights
        assert core.blueprint(file, device="cpu").weights == weights


@pytest.mark.usefixtures("unpacking")
def test_file_of_floats_has_nothing_to_unpack(tmp_path: Path) -> None:
    path = save_gguf(gguf_models.make("llama"), tmp_path / "floats.gguf", "F32")
    model = core.load(path, device="cpu")
    assert model.unpacked_format == ""
    assert unpacked_notices(model) == []


@pytest.mark.usefixtures("unpacking")
def test_requested_weights_are_not_said_to_be_unpacked(file: Path) -> None:
    model = core.load(file, weights="bfloat16", device="cpu")
    assert model.dtype == torch.bfloat16
    assert unpacked_notices(model) == []
