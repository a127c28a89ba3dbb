"""Tensor parallelism: each process computes a part of each layer, and the results are summed."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import torch

from decodescope.core.errors import OutOfMemoryError, ParameterError, ScaleError
from decodescope.core.explain.words import size
from decodescope.core.labs.processes.lab_processes import RUNTIME_BYTES, LabProcesses, free_port
from decodescope.core.labs.speed.events import Row, RowMeasurement
from decodescope.core.labs.speed.measured_model import MeasuredModel, measure_bandwidth
from decodescope.core.labs.speed.tensor_messages import (
    LINES,
    TensorParallelFailed,
    TensorParallelJob,
    TensorParallelResult,
)
from decodescope.core.models.model_entry import free_memory, weight_bytes
from decodescope.resources.language import tr

ROWS = ("1", "2", "3", "4")
_POLL_SECONDS = 0.1


def measure(subject: MeasuredModel, row: Row, measured_rows: Mapping[str, RowMeasurement]) -> RowMeasurement:
    """Measure the number of processes in `row`, each running transformers' `generate`. Raises DecodescopeError,
    MeasurementCancelled.
    """
    count = int(row.name)
    _check_supported(subject, count)
    slices = run_processes(subject, count)
    subject.sequences_by_row[row] = tuple(slices[0].ids)
    alone, held = measured_rows.get(ROWS[0]), max(one.bytes for one in slices)
    return RowMeasurement(
        row,
        tuple(slices[0].speeds),
        held,
        measure_bandwidth(held, subject.base.device) / held,
        base=alone.speed if alone is not None else 0.0,
        same=subject.sequences_by_row[row] == subject.sequences_by_row[alone.row] if alone is not None else None,
    )


def run_processes(subject: MeasuredModel, count: int) -> list[TensorParallelResult]:
    """Run `count` processes and return their results by rank; none outlives this. Raises ScaleError,
    MeasurementCancelled.
    """
    settings, port, dtype = subject.settings, free_port(0), str(subject.base.dtype).removeprefix("torch.")
    jobs = [
        TensorParallelJob(
            str(subject.entry.path), dtype, rank, count, port, settings.prompt, subject.tokens, settings.repeats
        )
        for rank in range(count)
    ]
    found: dict[int, TensorParallelResult] = {}
    with LabProcesses("decodescope.core.labs.speed.tensor_rank", jobs, LINES) as ranks:
        while len(found) < count:
            subject.check_cancelled()
            match ranks.next_message(_POLL_SECONDS):
                case (rank, TensorParallelResult() as one):
                    found[rank] = one
                case (rank, TensorParallelFailed() as broke):
                    raise ScaleError(broke.words, "", ranks.stderr_tail(rank))
                case (rank, None) if rank not in found:
                    raise ScaleError(tr("A process exited with code {code}.").format(code=ranks.exit_code(rank)))
    return [found[rank] for rank in sorted(found)]


def _check_supported(subject: MeasuredModel, count: int) -> None:
    """Check that this many processes can share the model here. Raises DecodescopeError."""
    base = subject.base
    if getattr(sys, "frozen", False):
        raise ScaleError(tr("The packaged program cannot start Python processes."))
    if base.config.base_model_tp_plan is None:
        raise ParameterError(tr("transformers has no tensor parallelism plan for {model}.").format(model=base.name))
    heads = base.config.num_key_value_heads
    if heads % count:
        raise ParameterError(
            tr("Its {heads} attention heads cannot be divided evenly among {count} processes.").format(
                heads=heads, count=count
            )
        )
    _check_memory(subject, count)


def _check_memory(subject: MeasuredModel, count: int) -> None:
    if subject.base.device.type == "cuda":
        if count > (cards := torch.cuda.device_count()):
            raise ParameterError(tr("This machine has only {cards} GPUs.").format(cards=cards))
        return
    needed, free = weight_bytes(subject.entry, "float32") + RUNTIME_BYTES * count, free_memory()
    if needed > free:
        raise OutOfMemoryError(
            tr("{count} processes need about {needed}, but only {free} are free.").format(
                count=count, needed=size(needed), free=size(free)
            )
        )
