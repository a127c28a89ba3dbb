"""ZeRO-R run in processes: what a step remembers without and with it. Importing this imports no torch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from core.checks.arguments import cancel_event_or_new, check_text
from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.arguments import check_lab_object
from core.labs.formatting import decimal
from core.labs.processes.lab_processes import free_port
from core.labs.scale.allocator_arena import Arena, arena
from core.labs.scale.pipeline_schedule import Options
from core.labs.scale.ranks import expected_load
from core.labs.scale.ranks.expected_load import FLOAT_BYTES
from core.labs.scale.ranks.model_outline import ModelOutline, read_outline
from core.labs.scale.ranks.rank_messages import MemoryRecorded, RankJob
from core.labs.scale.ranks.run_measurement import (
    Progress,
    RankWatcher,
    check_free_memory,
    check_port,
    check_process_count,
)
from resources.language import mark

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
    expected_load.check_divisible(model, processes)
    check_free_memory(expected_load.rank_parts(model, processes))
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
    whole = expected_load.rank_parts(model, processes)[0].gradients
    if not is_on:
        return ResidualEstimate(FLOAT_BYTES * shape.layers * numbers, whole, 0)
    gathered = FLOAT_BYTES * shape.layers * share * processes if processes > 1 else 0
    return ResidualEstimate(FLOAT_BYTES * shape.layers * share, min(BUFFER_BYTES, whole), gathered)


_CHECKPOINTS = Saying(
    mark("For the way back each process keeps {kept} instead of {whole}."),
    mark("Each of {count} processes keeps {kept} of checkpoints instead of {whole}, and sends {sent} for them."),
    mark("P_a: checkpoints {kept_exactly} bytes (reckoned {reckoned}) of {whole_exactly}, 1/N, N = {count}; +{sent}."),
)
_BUFFER = Saying(
    mark("All corrections go through a store of {kept} instead of {whole}."),
    mark("The buffer that all gradients are copied into is {kept}, however large the model; it would be {whole}."),
    mark("C_b: a fused buffer of {kept}, constant, instead of {whole} = 4 bytes a gradient."),
)
_GAPS = Saying(
    mark("Kept apart, what stays long leaves smaller holes: {kept} instead of {whole}."),
    mark(
        "With what stays long kept apart, gaps are {kept} at most instead of {whole}, memory {top} instead of {high}."
    ),
    mark("M_D: gaps {kept} instead of {whole}, highest byte {top} instead of {high}; first fit, in recorded order."),
)
_NO_GAPS = Saying(
    mark("Kept apart, what stays long leaves holes of {kept}; otherwise they are {whole}."),
    mark("In a step this small order wins nothing: gaps are {kept} at most, {whole} without; memory {top} and {high}."),
    mark("M_D: gaps {kept}, without {whole}; highest byte {top}, without {high}; first fit, in recorded order."),
)
_IDENTICAL_GRADIENTS = Saying(
    mark("The corrections are exactly the same."),
    mark("The gradients are the same, bit by bit."),
    mark("g = g₀, bit by bit."),
)
_SAME_GRADIENTS = Saying(
    mark("The corrections are the same."),
    mark("The gradients are the same, to {difference} of the greatest."),
    mark("max|g − g₀| ÷ max|g₀| = {difference}."),
)


def explain_residual(found: Residual) -> Sentence:
    """Checkpoints, the buffer, gaps, and that the result is the same. Raises ParameterError."""
    check_lab_object("found", found, Residual)
    without, kept = found.without[0], found.kept[0]
    return together(
        _CHECKPOINTS.say(
            kept=decimal(kept.checkpoints),
            whole=decimal(without.checkpoints),
            count=str(len(found.kept)),
            sent=decimal(found.sent),
            kept_exactly=SentenceNumber(f"{kept.checkpoints:,}"),
            whole_exactly=SentenceNumber(f"{without.checkpoints:,}"),
            reckoned=SentenceNumber(f"{found.expected.checkpoints:,}"),
        ),
        _BUFFER.say(kept=decimal(kept.buffer), whole=decimal(without.buffer)),
        _gaps(found),
        (_SAME_GRADIENTS if found.difference else _IDENTICAL_GRADIENTS).say(
            difference=SentenceNumber(f"{found.difference:.1e}")
        ),
    )


def _gaps(residual: Residual) -> Sentence:
    before, after = residual.arenas
    return (_GAPS if after.gaps < before.gaps else _NO_GAPS).say(
        kept=decimal(after.gaps), whole=decimal(before.gaps), top=decimal(after.top), high=decimal(before.top)
    )
