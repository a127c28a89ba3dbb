"""Messages of the tensor parallel processes: one line of JSON each."""

from __future__ import annotations

import msgspec

from decodescope.core.labs.processes.lab_processes import JsonLines


class TensorParallelJob(msgspec.Struct, frozen=True):
    """The job of one process. Ranks count from 0."""

    folder: str
    """Folder of the model."""
    dtype: str
    rank: int
    processes: int
    port: int
    prompt: str
    tokens: int
    repeats: int


class TensorParallelResult(msgspec.Struct, frozen=True):
    """A process's result: bytes held, token ids, and tokens per second of each repeat."""

    bytes: int
    ids: list[int]
    speeds: list[float]


class TensorParallelFailed(msgspec.Struct, frozen=True):
    """A process failed."""

    words: str


Message = TensorParallelResult | TensorParallelFailed
LINES = JsonLines[Message](TensorParallelResult, TensorParallelFailed)
