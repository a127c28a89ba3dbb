"""The figures of a step read in machine code, where it is built: one function for some twenty operations."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch

from core.decoding.stats_row import row_length
from core.native.native_library import library

_FLOAT32_BYTES = 4
"""Bytes."""


def has_native_stats(scores: Sequence[torch.Tensor]) -> bool:
    """Whether scores like these can be."""
    return library() is not None and all(
        stage.dtype is torch.float32 and stage.device.type == "cpu" for stage in scores
    )


def compute_native_stats(scores: Sequence[torch.Tensor], chosen: torch.Tensor, top_n: int) -> list[array[float]] | None:
    """A row of figures for each text (`core.decoding.stats_row.row_length`); None where nothing is built, or the scores
    lie
    elsewhere.

    `scores`: [B, V], raw and after every stage; `chosen`: [B].
    """
    found = library()
    if found is None or not has_native_stats(scores):
        return None
    rows, vocabulary = scores[0].shape
    if top_n > vocabulary:
        return None
    kept = [stage.contiguous() for stage in scores]
    width, picked = row_length(len(scores) - 1, top_n), chosen.to(torch.int64).contiguous()
    read = array("f", bytes(_FLOAT32_BYTES * rows * width))
    place, _ = read.buffer_info()
    found.compute_stats([stage.data_ptr() for stage in kept], rows, vocabulary, picked.data_ptr(), top_n, place)
    return [read] if rows == 1 else [read[row * width : (row + 1) * width] for row in range(rows)]
