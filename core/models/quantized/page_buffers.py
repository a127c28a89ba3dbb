"""Large buffers in pages of their own.

Packing makes and drops buffers all along, and keeps a little of each matrix, such as its scales. From the allocator's
heap, the little would lie in the hole that a buffer left, which is too small for the next one then: a process held two
thirds more than its weights.
"""

from __future__ import annotations

import math
import mmap

import torch

_MIN_BYTES = 2**16
"""Bytes; whatever is smaller comes from the heap."""


def allocate_pages(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor to be filled; its pages are given back to the system with it."""
    size = math.prod(shape) * dtype.itemsize
    if size < _MIN_BYTES:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(_map_pages(size), dtype=dtype).view(shape)


def _map_pages(size: int) -> mmap.mmap:
    """Of this process alone, where the system tells them apart."""
    private = getattr(mmap, "MAP_PRIVATE", None)
    return mmap.mmap(-1, size) if private is None else mmap.mmap(-1, size, private | mmap.MAP_ANONYMOUS)
