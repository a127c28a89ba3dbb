"""How quickly this machine reads a block of memory: what no way of decoding one text token by token can pass."""

from __future__ import annotations

import time

import torch

_MIN_BYTES, _MAX_BYTES = 2**20, 2**29
"""Bytes of the block."""
_REPEATS = 5


def measure_bandwidth(size: int, device: torch.device) -> float:
    """Bytes a second, the best of a few readings of a block of `size` bytes (of 512 MiB where it is larger).

    A block that fits into the processor's own caches is read from there, as weights of that size are.
    """
    rows = max(1, min(max(size, _MIN_BYTES), _MAX_BYTES) // (4 * _WIDTH))
    block, row = torch.ones(rows, _WIDTH, device=device), torch.ones(_WIDTH, device=device)
    with torch.inference_mode():
        torch.mv(block, row)
        return block.numel() * block.element_size() / min(_time_read(block, row) for _ in range(_REPEATS))


_WIDTH = 1024


def _time_read(block: torch.Tensor, row: torch.Tensor) -> float:
    """One product, which reads every number once, as a layer's does."""
    _synchronize(block.device)
    began = time.perf_counter()
    torch.mv(block, row)
    _synchronize(block.device)
    return time.perf_counter() - began


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
