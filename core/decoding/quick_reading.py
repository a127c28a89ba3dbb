"""The figures of a step read in machine code, where it is built: one function for some twenty operations."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core.native.library import library

FIXED = 7
"""Figures every row begins with (`core.decoding.observe`)."""
_OF_STAGE = 3
"""Survivors, mass and raw mass."""


def read_quickly(scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int) -> list[list[float]] | None:
    """A row of figures for each text; None where nothing is built, or the scores lie elsewhere.

    `scores`: [B, V], raw and after every stage; `chosen`: [B].
    """
    found = library()
    if found is None or any(stage.dtype != torch.float32 or stage.device.type != "cpu" for stage in scores):
        return None
    rows, vocabulary = scores[0].shape
    if top_n > vocabulary:
        return None
    kept = [stage.contiguous() for stage in scores]
    read, picked = torch.empty(rows, columns(len(scores) - 1, top_n)), chosen.to(torch.int64).contiguous()
    found.read([stage.data_ptr() for stage in kept], rows, vocabulary, picked.data_ptr(), top_n, read.data_ptr())
    told: list[list[float]] = read.tolist()
    return told


def columns(stages: int, top_n: int) -> int:
    """Figures of a row."""
    if not top_n:
        return FIXED
    return FIXED + 2 * top_n + (top_n + stages * (_OF_STAGE + 2 * top_n) if stages else 0)
