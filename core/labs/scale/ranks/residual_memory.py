"""ZeRO-R run in processes: what a step remembers without and with it. Importing this imports no torch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from core.arguments import cancel_event_or_new, check_text
from core.labs.processes.machine import free_port
from core.labs.scale.allocator_arena import Arena, arena
from core.labs.scale.pipeline_options import Options
from core.labs.scale.ranks import tensor_parallel_load
from core.labs.scale.ranks.model_outline import ModelOutline, read_outline
from core.labs.scale.ranks.predicted_bytes import FLOAT_BYTES
from core.labs.scale.ranks.rank_messages import MemoryRecorded, RankJob
from core.labs.scale.ranks.rank_watcher import Progress, RankWatcher
from core.labs.scale.ranks.run_measurement import check_free_memory, check_port, check_process_count

BUFFER_BYTES = 1 << 20
"""Bytes of the buffer that does not grow with the model."""
TEXT_LENGTH = 64
"""Tokens of the text."""
SCHEME = "zeror"


@dataclass(frozen=True)
class ResidualEstimate:
    """Bytes of one rank: the layers' checkpoints, the buffer of gradients, and what is sent for checkpoints."""

    checkpoints: int
    buffer: int
    sent: int


@dataclass(frozen=True)
class Residual:
    """A step without ZeRO-R and one with it, by rank, beside what was reckoned of the first, which is the fullest.
    `difference`: of their gradients, as a share of the greatest."""

    without: tuple[MemoryRecorded, ...]
    kept: tuple[MemoryRecorded, ...]
    expected_without: ResidualEstimate
    expected: ResidualEstimate
    difference: float
    arenas: tuple[Arena, Arena]
    """Of the first process: without, each block in the first gap; with it, what stays apart."""

    @property
    def sent(self) -> int:
        """Bytes that putting checkpoints together took."""
        return self.kept[0].sent - self.without[0].sent


def remembering(
    model_name: str, processes: int = 2, *, port: int = 0, cancel: threading.Event | None = None
) -> Iterator[Progress | Residual]:
    """Run both steps by tensor parallelism, and take down all memory; ends without a result once `cancel` is set.

    Raises ParameterError, ModelError, OutOfMemoryError before anything is started; ScaleError where a process dies.
    """
    cancel = cancel_event_or_new(cancel)
    check_text("model_name", model_name)
    check_process_count(processes)
    processes = int(processes)
    check_port(port)
    model = read_outline(model_name)
    tensor_parallel_load.check_divisible(model, processes)
    check_free_memory(tensor_parallel_load.rank_parts(model, processes))
    job = RankJob(str(model.folder), SCHEME, 0, processes, free_port(port), 2, TEXT_LENGTH, Options(), model.is_tied)
    watch = RankWatcher([structs.replace(job, rank=rank) for rank in range(processes)], cancel)
    yield from watch.follow()
    if len(watch.counted) == processes:
        told = [watch.counted[rank] for rank in range(processes)]
        without, kept = (tuple(rank.memory_records[number] for rank in told) for number in (0, 1))
        yield Residual(
            without, kept, estimate_residual(model, processes, False), estimate_residual(model, processes, True),
            max(rank.difference for rank in told),
            (arena(without[0].blocks), arena(kept[0].blocks, apart=True)),
        )  # fmt: skip


def estimate_residual(model: ModelOutline, processes: int, is_on: bool) -> ResidualEstimate:
    """A layer's input for each layer, a whole one or its share; gradients at once, or through a constant buffer."""
    shape = model.shape
    numbers = TEXT_LENGTH * shape.width
    share = -(-numbers // processes)
    whole = tensor_parallel_load.rank_parts(model, processes)[0].gradients
    if not is_on:
        return ResidualEstimate(FLOAT_BYTES * shape.layers * numbers, whole, 0)
    gathered = FLOAT_BYTES * shape.layers * share * processes if processes > 1 else 0
    return ResidualEstimate(FLOAT_BYTES * shape.layers * share, min(BUFFER_BYTES, whole), gathered)
