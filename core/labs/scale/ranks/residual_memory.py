"""Memory of a real step without and with ZeRO-R. Importing this module imports no torch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from decodescope.core.checks.arguments import cancel_event_or_new, check_text
from decodescope.core.explain.sentence import Sentence, SentenceNumber, SentenceTemplate, together
from decodescope.core.labs.arguments import check_lab_object
from decodescope.core.labs.formatting import decimal_bytes
from decodescope.core.labs.processes.lab_processes import free_port
from decodescope.core.labs.scale.allocator_arena import Arena, arena
from decodescope.core.labs.scale.pipeline_schedule import Options
from decodescope.core.labs.scale.ranks import expected_load
from decodescope.core.labs.scale.ranks.expected_load import FLOAT_BYTES
from decodescope.core.labs.scale.ranks.model_outline import ModelOutline, read_outline
from decodescope.core.labs.scale.ranks.rank_messages import RankJob, StepMemory
from decodescope.core.labs.scale.ranks.run_measurement import (
    RankProgress,
    RankWatcher,
    check_free_memory,
    check_port,
    check_process_count,
)
from decodescope.resources.language import mark

BUFFER_BYTES = 1 << 20
"""Bytes of the constant gradient buffer."""
TEXT_LENGTH = 64
"""Tokens of the text."""
SCHEME = "zeror"


@dataclass(frozen=True)
class ResidualEstimate:
    """Expected bytes of one rank: the layers' checkpoints, the gradient buffer, and the traffic for checkpoints."""

    checkpoints: int
    buffer: int
    sent: int


@dataclass(frozen=True)
class Residual:
    """A step without ZeRO-R and one with it, by rank, with the estimate for the first rank, which holds most.

    `difference`: of their gradients, relative to the largest.
    """

    without: tuple[StepMemory, ...]
    kept: tuple[StepMemory, ...]
    expected_without: ResidualEstimate
    expected: ResidualEstimate
    difference: float
    arenas: tuple[Arena, Arena]
    """Memory layouts of the first process: first fit without ZeRO-R, and long-lived blocks separated with it."""

    @property
    def sent(self) -> int:
        """Bytes sent to gather the checkpoints."""
        return self.kept[0].sent - self.without[0].sent


def measuring_memory(
    model_name: str, processes: int = 2, *, port: int = 0, cancel: threading.Event | None = None
) -> Iterator[RankProgress | Residual]:
    """Run both steps with tensor parallelism and record all memory; ends without a result once `cancel` is set.

    Raises ParameterError, ModelError, OutOfMemoryError before anything starts; ScaleError if a process dies.
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
        ranks_in_order = [watch.counted[rank] for rank in range(processes)]
        without, with_zero_r = (tuple(rank.memory_records[number] for rank in ranks_in_order) for number in (0, 1))
        yield Residual(
            without, with_zero_r, estimate_residual(model, processes, False), estimate_residual(model, processes, True),
            max(rank.difference for rank in ranks_in_order),
            (arena(without[0].blocks), arena(with_zero_r[0].blocks, apart=True)),
        )  # fmt: skip


def estimate_residual(model: ModelOutline, processes: int, is_on: bool) -> ResidualEstimate:
    """Estimate each layer's checkpoint, full or divided, and the gradient buffer, full or constant."""
    shape = model.shape
    numbers = TEXT_LENGTH * shape.width
    share = -(-numbers // processes)
    whole = expected_load.rank_parts(model, processes)[0].gradients
    if not is_on:
        return ResidualEstimate(FLOAT_BYTES * shape.layers * numbers, whole, 0)
    gathered = FLOAT_BYTES * shape.layers * share * (processes - 1)
    return ResidualEstimate(FLOAT_BYTES * shape.layers * share, min(BUFFER_BYTES, whole), gathered)


_CHECKPOINTS = SentenceTemplate(
    mark("For the backward pass each process keeps {kept} instead of {whole}."),
    mark("Each of {count} processes keeps {kept} of checkpoints instead of {whole}, and sends {sent} to gather them."),
    mark(
        "P_a: checkpoints {kept_exactly} bytes (predicted {predicted_bytes}) of {whole_exactly}, 1/N, N = {count}; "
        "+{sent}."
    ),
)
_BUFFER = SentenceTemplate(
    mark("All corrections pass through a buffer of {kept} instead of {whole}."),
    mark("All gradients pass through a buffer of {kept}, whatever the model's size; otherwise it would be {whole}."),
    mark("C_b: a fused buffer of constant size {kept} instead of {whole} = 4 bytes per gradient."),
)
_GAPS = SentenceTemplate(
    mark("Storing long-lived data separately leaves smaller holes: {kept} instead of {whole}."),
    mark(
        "With long-lived data stored separately, gaps are at most {kept} instead of {whole}, memory "
        "{top} instead of {high}."
    ),
    mark("M_D: gaps {kept} instead of {whole}, highest byte {top} instead of {high}; first fit in recorded order."),
)
_NO_GAPS = SentenceTemplate(
    mark("Storing long-lived data separately leaves holes of {kept}; otherwise they are {whole}."),
    mark(
        "In such a small step this gains nothing: gaps are at most {kept}, without it {whole}; memory {top} and {high}."
    ),
    mark("M_D: gaps {kept}, without it {whole}; highest byte {top}, without it {high}; first fit in recorded order."),
)
_IDENTICAL_GRADIENTS = SentenceTemplate(
    mark("The corrections are exactly the same."),
    mark("The gradients are identical, bit by bit."),
    mark("g = g₀, bit by bit."),
)
_SAME_GRADIENTS = SentenceTemplate(
    mark("The corrections are the same."),
    mark("The gradients are the same, to within {difference} of the largest."),
    mark("max|g − g₀| ÷ max|g₀| = {difference}."),
)


def explain_residual(found: Residual) -> Sentence:
    """Explain the checkpoints, the buffer, the gaps, and the equality of the gradients. Raises ParameterError."""
    check_lab_object("found", found, Residual)
    without, with_zero_r = found.without[0], found.kept[0]
    return together(
        _CHECKPOINTS.say(
            kept=decimal_bytes(with_zero_r.checkpoints),
            whole=decimal_bytes(without.checkpoints),
            count=str(len(found.kept)),
            sent=decimal_bytes(found.sent),
            kept_exactly=SentenceNumber(f"{with_zero_r.checkpoints:,}"),
            whole_exactly=SentenceNumber(f"{without.checkpoints:,}"),
            predicted_bytes=SentenceNumber(f"{found.expected.checkpoints:,}"),
        ),
        _BUFFER.say(kept=decimal_bytes(with_zero_r.buffer), whole=decimal_bytes(without.buffer)),
        _gaps(found),
        (_SAME_GRADIENTS if found.difference else _IDENTICAL_GRADIENTS).say(
            difference=SentenceNumber(f"{found.difference:.1e}")
        ),
    )


def _gaps(residual: Residual) -> Sentence:
    before, after = residual.arenas
    return (_GAPS if after.gaps < before.gaps else _NO_GAPS).say(
        kept=decimal_bytes(after.gaps),
        whole=decimal_bytes(before.gaps),
        top=decimal_bytes(after.top),
        high=decimal_bytes(before.top),
    )
