"""Telling an out-of-memory failure from other errors, and how much memory a run took at its peak."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path

import torch

from core.errors import DecodescopeError

_PROCESS = Path("/proc/self")


_OUT_OF_MEMORY_MESSAGES = (
    "out of memory",  # CUDA, HIP, MPS, XPU, whatever class carries it
    "allocate memory",  # "DefaultCPUAllocator: can't …", "unable to mmap …: Cannot allocate memory (12)"
    "not enough memory",  # the same allocator on Windows
    "bad_alloc",
    "bad allocation",
    "enforce fail at alloc_cpu.cpp",
    "status_alloc_failed",  # cuBLAS, cuDNN, cuSPARSE, cuSOLVER
    "hiperroroutofmemory",
    "failed to allocate",
    "unable to allocate",
    "insufficient memory",
)
"""What libraries write, in small letters, when memory ends in a class of error that says nothing."""


def is_out_of_memory(error: BaseException) -> bool:
    """True for torch's and Python's own classes, the system's ENOMEM, and errors whose words or cause say so.

    Errors of this program carry their own words, and are never meant.
    """
    if isinstance(error, DecodescopeError) or not isinstance(error, Exception):
        return False
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    message = str(error).lower()
    return any(words in message for words in _OUT_OF_MEMORY_MESSAGES) or (
        error.__cause__ is not None and is_out_of_memory(error.__cause__)
    )


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
