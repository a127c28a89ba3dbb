"""Telling an out-of-memory failure from other errors."""

from __future__ import annotations

import torch


def is_out_of_memory(error: BaseException) -> bool:
    """True for torch's class on any device, Python's own, and the CPU allocator's plain RuntimeError."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
