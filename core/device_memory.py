"""Telling an out-of-memory failure from other errors, and how much memory a run took at its peak."""

from __future__ import annotations

import contextlib
from pathlib import Path

import torch

_PROCESS = Path("/proc/self")


def is_out_of_memory(error: BaseException) -> bool:
    """True for torch's class on any device, Python's own, and the CPU allocator's plain RuntimeError."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


class PeakMemory:
    """The most memory in use since this was made: by torch on a graphics card, by the whole process on a CPU.

    Weights, cache and activations are all in it. Where the system does not tell, there is no figure.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        elif device.type == "cpu":
            # Linux forgets the earlier peak when 5 is written here.
            with contextlib.suppress(OSError):
                (_PROCESS / "clear_refs").write_text("5", encoding="ascii")

    def read(self) -> int | None:
        """Bytes."""
        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device))
        return _process_peak() if self._device.type == "cpu" else None


def _process_peak() -> int | None:
    with contextlib.suppress(OSError):
        for line in (_PROCESS / "status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
