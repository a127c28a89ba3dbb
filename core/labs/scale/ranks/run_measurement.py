"""`measure`: a scheme for real, its bytes beside those that were reckoned. Importing this imports no torch."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

from msgspec import structs

from core.arguments import cancel_event_or_new, check_integer, check_text
from core.errors import OutOfMemoryError, ParameterError, ScaleError
from core.labs.arguments import check_lab_object
from core.labs.figures import decimal
from core.labs.processes.machine import RUNTIME_BYTES, free_port
from core.labs.scale.integer_arguments import positive_integer
from core.labs.scale.memory_parts import Parts
from core.labs.scale.pipeline_options import Options
from core.labs.scale.ranks.expected_load import RUNS, expected_load, text_length
from core.labs.scale.ranks.model_outline import read_outline
from core.labs.scale.ranks.rank_messages import RankJob
from core.labs.scale.ranks.rank_watcher import Progress, RankWatcher
from core.labs.scale.ranks.scale_measurement import Measured, combine_counts
from resources.language import tr

MOST = 4
"""Processes."""
STEPS = 3


def measure(
    model_name: str, scheme: str = "ddp", processes: int = 2, *, port: int = 0, options: Options | None = None
) -> Measured:
    """Train a model a few steps in that many processes, and count. Raises DecodescopeError."""
    for event in measuring(model_name, scheme, processes, port=port, options=options):
        if isinstance(event, Measured):
            return event
    raise ScaleError(tr("The processes ended before anything was measured."))


def measuring(
    model_name: str, scheme: str = "ddp", processes: int = 2, *, port: int = 0, options: Options | None = None,
    cancel: threading.Event | None = None,
) -> Iterator[Progress | Measured]:  # fmt: skip
    """The same as a stream, which ends without a result once `cancel` is set. No process outlives it.

    Raises ParameterError, ModelError, OutOfMemoryError before anything is started; ScaleError where a process dies.
    """
    cancel = cancel_event_or_new(cancel)
    chosen = Options() if options is None else options
    check_text("model_name", model_name)
    _check_arguments(scheme, processes, chosen)
    processes = int(processes)
    check_port(port)
    model = read_outline(model_name)
    expectation = expected_load(model, scheme, processes, chosen)
    check_free_memory(expectation.ranks)
    job = RankJob(
        str(model.folder), scheme, 0, processes, free_port(port), STEPS, text_length(scheme), chosen, model.is_tied
    )  # fmt: skip
    watch = RankWatcher([structs.replace(job, rank=rank) for rank in range(processes)], cancel)
    yield from watch.follow()
    if len(watch.counted) == processes:
        yield combine_counts(scheme, [watch.counted[rank] for rank in range(processes)], expectation, chosen)


def _check_arguments(scheme: str, processes: int, options: Options) -> None:
    """Raises ParameterError for what cannot be run, ScaleError where nothing can."""
    check_text("scheme", scheme)
    if scheme not in RUNS:
        raise ParameterError(
            tr("There is no scheme {name!r}.").format(name=scheme),
            tr("Choose one of {names}.").format(names=", ".join(RUNS)),
            "scheme",
        )
    check_process_count(processes)
    check_lab_object("options", options, Options)
    options.check()


def check_process_count(processes: int) -> None:
    """Raises ParameterError for too many, ScaleError where none can be started."""
    if positive_integer("processes", processes) > MOST:
        raise ParameterError(tr("At most {most} processes are started.").format(most=MOST), parameter="processes")
    if getattr(sys, "frozen", False):
        raise ScaleError(
            tr("A packed program cannot start other Python processes."),
            tr("Install Decodescope with pip to run this; the plan works everywhere."),
        )


def check_port(port: int) -> None:
    """Raises ParameterError."""
    check_integer("port", port, 0, 65_535)


def check_free_memory(expected: tuple[Parts, ...]) -> None:
    """Raises OutOfMemoryError where that many bytes are not free."""
    from core.models.memory_check import free_memory

    needed = sum(parts.total for parts in expected) + RUNTIME_BYTES * len(expected)
    if needed > (free := free_memory()):
        raise OutOfMemoryError(
            tr("{processes} processes would take about {needed}; {free} are free.").format(
                processes=len(expected), needed=decimal(needed), free=decimal(free)
            ),
            tr("Take fewer processes, or a smaller model."),
        )
