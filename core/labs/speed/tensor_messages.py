"""What the processes of tensor parallelism are told and tell: one line of JSON each."""

from __future__ import annotations

import msgspec

from core.labs.processes.lab_processes import JsonLines


class TensorParallelJob(msgspec.Struct, frozen=True):
    """What one process is to do. Ranks count from 0."""

    folder: str
    """Of the model."""
    dtype: str
    rank: int
    processes: int
    port: int
    prompt: str
    tokens: int
    repeats: int


class TensorParallelResult(msgspec.Struct, frozen=True):
    """What a process held, wrote and how quickly, in tokens a second of each repeat."""

    bytes: int
    ids: list[int]
    speeds: list[float]


class TensorParallelFailed(msgspec.Struct, frozen=True):
    """A process could not go on."""

    words: str


Message = TensorParallelResult | TensorParallelFailed
LINES = JsonLines[Message](TensorParallelResult, TensorParallelFailed)
