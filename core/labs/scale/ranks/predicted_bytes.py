"""What every rank is to hold, to the byte: the formulas, with the remainders that tensors of whole rows leave."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from core.labs.scale.memory_parts import Parts
from core.labs.scale.ranks.model_outline import TensorSize

FLOAT_BYTES = 4
"""Bytes of a number, and of the step counter that AdamW keeps for each tensor."""


def predicted_parts(sizes: Sequence[TensorSize], processes: int, scheme: str) -> tuple[Parts, ...]:
    """Parts of each rank, from the sizes of the model's tensors."""
    whole = [prod(size) for size in sizes]
    return tuple(_rank_parts(sizes, whole, processes, scheme, rank) for rank in range(processes))


def predicted_traffic(sizes: Sequence[TensorSize], processes: int, scheme: str) -> int:
    """Bytes that a rank sends in a step: ZeRO's counts of what the engines do. torch's ZeRO-1 reduces all gradients
    everywhere and then hands out parameters: Φ more than the paper's."""
    whole = sum(prod(size) for size in sizes)
    padded = sum(_rows_per_rank(size[0], processes) * processes * prod(size[1:]) for size in sizes)
    times = {"ddp": 2 * whole, "zero1": 3 * whole, "zero2": 2 * padded, "zero3": 3 * padded}
    return FLOAT_BYTES * times[scheme]


def _rank_parts(sizes: Sequence[TensorSize], counts: Sequence[int], processes: int, scheme: str, rank: int) -> Parts:
    everything = FLOAT_BYTES * sum(counts)
    if scheme in ("ddp", "zero1"):
        mine = counts if scheme == "ddp" else _assign_tensors(counts, processes)[rank]
        return Parts(everything, everything, adam_bytes(sum(mine), len(mine)))
    share = sum(_rank_rows(size[0], processes, rank) * prod(size[1:]) for size in sizes)
    optimizer = adam_bytes(share, len(sizes))
    if scheme == "zero2":  # the engine keeps its own share beside the gathered whole; alone, the share is the whole
        return Parts(everything, FLOAT_BYTES * share, optimizer, buffers=FLOAT_BYTES * share if processes > 1 else 0)
    return Parts(FLOAT_BYTES * share, FLOAT_BYTES * share, optimizer)


def adam_bytes(count: int, tensors: int) -> int:
    """Momentum, variance, and a counter for each tensor."""
    return FLOAT_BYTES * (2 * count + tensors)


def _assign_tensors(counts: Sequence[int], processes: int) -> list[list[int]]:
    """Whole tensors, the largest first, each to the rank that has least: as `ZeroRedundancyOptimizer` does."""
    ranks: list[list[int]] = [[] for _ in range(processes)]
    for count in sorted(counts, reverse=True):
        min(ranks, key=sum).append(count)
    return ranks


def _rows_per_rank(count: int, processes: int) -> int:
    """Rows of the fullest share: the first dimension is cut as `torch.chunk` does."""
    return -(-count // processes)


def _rank_rows(count: int, processes: int, rank: int) -> int:
    rows = _rows_per_rank(count, processes)
    return max(0, min(count - rank * rows, rows))
