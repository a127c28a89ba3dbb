"""Peak memory of a run, and recognition of out-of-memory errors."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.system import device_memory
from decodescope.core.system.device_memory import PeakMemory, is_out_of_memory
from tests.core import tiny

LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")


def _rise_of_the_peak(size: int) -> int:
    """Return by how much the peak rises while a block of `size` bytes exists, after a larger one was freed."""
    block = torch.ones(100_000_000, dtype=torch.uint8)
    del block
    peak = PeakMemory(torch.device("cpu"))
    before = peak.read()
    block = torch.ones(size, dtype=torch.uint8)
    del block
    after = peak.read()
    assert before is not None
    assert after is not None
    return after - before


@LINUX
def test_peak_memory_covers_the_measured_period_only() -> None:
    gc.collect()
    rises = [_rise_of_the_peak(60_000_000) for _ in range(3)]  # threads of other tests may free memory in one of them
    assert any(50_000_000 < rise < 90_000_000 for rise in rises), rises


@LINUX
def test_run_reports_its_peak_memory() -> None:
    model = tiny.shared("llama")
    metrics = core.run(model, core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=4))).metrics
    assert metrics.peak_memory_bytes is not None
    assert metrics.peak_memory_bytes > model.weight_bytes + metrics.cache_peak_bytes


def test_peak_memory_is_none_without_system_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(device_memory, "_PROCESS", tmp_path)
    assert PeakMemory(torch.device("cpu")).read() is None
    assert PeakMemory(torch.device("meta")).read() is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("x"), True), (MemoryError(), True), (RuntimeError("DefaultCPUAllocator: can't allocate "
         "memory: you tried to allocate 1 bytes"), True), (RuntimeError("shapes"), False), (ValueError(), False),
    ],
)  # fmt: skip
def test_out_of_memory_errors_are_recognized(error: Exception, expected: bool) -> None:
    assert is_out_of_memory(error) is expected
