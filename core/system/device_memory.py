"""Detect out-of-memory errors, and measure the peak memory of a run."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path

import torch

from decodescope.core.errors import DecodescopeError

_PROCESS = Path("/proc/self")


_OUT_OF_MEMORY_MESSAGES = (
    "out of memory",  # CUDA, HIP, MPS, XPU, in any exception class
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
"""Messages of libraries, in lower case, that report lack of memory in an unspecific exception class."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return True for the classes of torch and Python, the system's ENOMEM, and errors whose message or cause says so.

    Errors of this program have their own messages and never count.
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
    """Peak memory since this object was created: torch's on a GPU, the whole process's on a CPU.

    It includes weights, cache and activations. None where the system does not report it.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        elif device.type == "cpu":
            # Linux resets the peak when 5 is written to clear_refs.
            with contextlib.suppress(OSError):
                (_PROCESS / "clear_refs").write_text("5", encoding="ascii")

    def read(self) -> int | None:
        """Return the peak in bytes."""
        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device))
        return _process_peak() if self._device.type == "cpu" else None


def _process_peak() -> int | None:
    with contextlib.suppress(OSError):
        for line in (_PROCESS / "status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
