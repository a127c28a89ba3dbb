"""Small questions about scores, asked of NumPy where they are plain numbers of the host's memory: a call of torch costs
more than the answer, and gives up the interpreter's lock, for which a window that draws makes a run wait."""

from __future__ import annotations

import torch


def argmax(scores: torch.Tensor) -> torch.Tensor:
    """The place of the greatest of each row, the first among equals: int64 [B] of scores [B, V]."""
    return torch.from_numpy(scores.numpy().argmax(-1)) if _is_cpu_float32(scores) else scores.argmax(-1)


def row_max(scores: torch.Tensor) -> list[float]:
    """The greatest of each row of scores [B, V]; NaN where one is no number."""
    found: list[float] = (scores.numpy().max(-1) if _is_cpu_float32(scores) else scores.amax(-1)).tolist()
    return found


def _is_cpu_float32(scores: torch.Tensor) -> bool:
    return scores.is_cpu and scores.dtype is torch.float32 and not scores.requires_grad
