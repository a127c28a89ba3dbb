"""Measure a scheme in real processes and compare its bytes with the expected ones. Imports no torch."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from core.checks.arguments import cancel_event_or_new, check_integer, check_text
from core.errors import OutOfMemoryError, ParameterError, ScaleError
from core.labs.arguments import check_lab_object, positive_integer
from core.labs.formatting import decimal
from core.labs.processes.lab_processes import RUNTIME_BYTES, LabProcesses, free_port
from core.labs.scale.pipeline_schedule import Box, Options, schedule
from core.labs.scale.ranks.expected_load import PIPELINES, RUNS, ExpectedLoad, expected_load, text_length
from core.labs.scale.ranks.model_outline import read_outline
from core.labs.scale.ranks.rank_messages import (
    LINES,
    BytesCounted,
    Message,
    MilestoneReached,
    RankFailed,
    RankJob,
    SampledTexts,
)
from core.labs.scale.zero_states import Parts
from resources.language import tr


@dataclass(frozen=True)
class Measured:
    """What was counted in the last step, by rank, beside what was reckoned."""

    scheme: str
    ranks: tuple[Parts, ...]
    predicted: tuple[Parts, ...]
    traffic: tuple[int, ...]
    """Bytes that each rank sent, an all-reduce counted twice."""
    predicted_traffic: int
    """Of the engine that was used; of the rank that sends most."""
    paper_traffic: int
    """Of ZeRO's paper, or Megatron-LM's; 0 for what neither speaks of."""
    losses: tuple[float, ...]
    alone: tuple[float, ...]
    """The same steps by one process that reads all texts."""
    seconds: float
    expected_traffic: tuple[int, ...] = ()
    """By rank."""
    difference: float = 0.0
    """Of pipelines and tensor parallelism: the gradients' greatest difference from those of one process, as a share of
    the greatest."""
    boxes: tuple[Box, ...] = ()
    """Of pipelines: what each did in the last step, in milliseconds from its beginning, as the clock had it."""
    expected_boxes: tuple[Box, ...] = ()
    """The same by the schedule, from what one process takes, each stage its share."""
    weights: str = ""
    """Of PipeDream: by which it went back; one of `timetable.WEIGHTS`."""
    stray: float = 0.0
    """Of PipeDream: how far its gradients are from those of the weights that went forward, as a share of the
    greatest; 0 where it keeps these."""
    parted: bool = False
    """Whether tables that the model ties learned apart."""
    written: SampledTexts | None = None
    """Of tensor parallelism: the text, as the first rank had it."""
    expected_written: int = 0
    """Bytes that a rank was to send meanwhile."""

    @property
    def loss(self) -> float:
        """Of the last step."""
        return self.losses[-1]


def combine_counts(
    scheme: str, counted: Sequence[BytesCounted], expectation: ExpectedLoad, options: Options
) -> Measured:
    """Put together what the ranks have told, in their order."""
    return Measured(
        scheme,
        tuple(Parts(**rank.parts) for rank in counted),
        expectation.ranks,
        tuple(sum(rank.traffic.values()) for rank in counted),
        max(expectation.traffic),
        expectation.paper_traffic,
        tuple(next(rank.losses for rank in reversed(counted) if rank.losses)),
        tuple(counted[0].single_process_losses),
        max(rank.seconds for rank in counted),
        expectation.traffic,
        max(rank.difference for rank in counted),
        _shift_to_zero([box for rank in counted for box in rank.boxes]),
        _expected_schedule(scheme, len(counted), options, counted[0].costs) if scheme in PIPELINES else (),
        options.weights if scheme == "pipedream" else "",
        counted[0].unstashed_error,
        expectation.is_untied,
        counted[0].sampled_texts,
        expectation.generation_traffic,
    )


def _shift_to_zero(boxes: Sequence[Box]) -> tuple[Box, ...]:
    """On a clock that starts with the first of them."""
    begun = min((box.start for box in boxes), default=0.0)
    moved = (replace(box, start=round(box.start - begun, 2), stop=round(box.stop - begun, 2)) for box in boxes)
    return tuple(sorted(moved, key=lambda box: (box.start, box.stop, box.device)))


def _expected_schedule(
    scheme: str, stages: int, options: Options, costs: tuple[float, float, float]
) -> tuple[Box, ...]:
    """What the plan says, each stage taking its share of what one process takes."""
    forward, backward, update = (cost / stages for cost in costs)
    again = forward if options.recompute and scheme != "pipedream" else 0.0
    return schedule(
        stages, options.micro_batches, scheme, forward=forward, backward=backward + again, update=update,
        weights=options.weights,
    )  # fmt: skip


_POLL_SECONDS, _EXIT_NOTICE_SECONDS = 0.1, 1.0
_RANK_MODULE = "core.labs.scale.ranks.rank"


@dataclass(frozen=True)
class Progress:
    """A process has come so far: `starts`, `alone`, `joins`, `step`. Ranks count from 0, steps from 1."""

    rank: int
    stage: str
    step: int
    steps: int
    process: int
    """The system's id of it."""


@dataclass
class RankWatcher:
    """Listens until every rank has counted, one has failed, or somebody wants it to stop."""

    jobs: Sequence[RankJob]
    cancel: threading.Event
    counted: dict[int, BytesCounted] = field(default_factory=dict)
    reached: dict[int, MilestoneReached] = field(default_factory=dict)

    def follow(self) -> Iterator[Progress]:
        """Progress of all. Raises ScaleError, OutOfMemoryError."""
        with LabProcesses(_RANK_MODULE, self.jobs, LINES) as ranks:
            while len(self.counted) < len(self.jobs) and not self.cancel.is_set():
                told = ranks.next_message(_POLL_SECONDS)
                match told:
                    case (rank, MilestoneReached() as reached):
                        self.reached[rank] = reached
                        yield Progress(rank, reached.stage, reached.step, self.jobs[rank].steps, ranks.ids[rank])
                    case (rank, BytesCounted() as counted):
                        self.counted[rank] = counted
                    case (rank, RankFailed() as failed):
                        ended = None if failed.is_out_of_memory else self._silently_ended_rank(rank, ranks)
                        raise (
                            self._failed_error(rank, failed, ranks) if ended is None else self._died_error(ended, ranks)
                        )
                    case (rank, None) if rank not in self.counted:
                        raise self._died_error(rank, ranks)

    def _silently_ended_rank(self, first: int, ranks: LabProcesses[Message]) -> int | None:
        """The process that ended without a word, if one did: another one may be quicker to tell that it lost the
        connection than the system is to tell of the end."""
        spoke, until = {first, *self.counted}, time.monotonic() + _EXIT_NOTICE_SECONDS
        while time.monotonic() < until:
            match ranks.next_message(_POLL_SECONDS):
                case (rank, RankFailed()):
                    spoke.add(rank)
                case (rank, None) if rank not in spoke:
                    return rank
        return None

    def _failed_error(self, rank: int, failed: RankFailed, ranks: LabProcesses[Message]) -> Exception:
        if failed.is_out_of_memory:
            return OutOfMemoryError(
                tr("Memory ended in process {rank} of {all}.").format(rank=rank + 1, all=len(self.jobs)),
                tr("Take fewer processes, or a smaller model."),
                ranks.stderr_tail(rank),
            )
        return ScaleError(
            tr("Process {rank} of {all} could not go on: {words}").format(
                rank=rank + 1, all=len(self.jobs), words=failed.message.splitlines()[0]
            ),
            tr("The others were ended; nothing is left running. Try it again."),
            ranks.stderr_tail(rank),
        )

    def _died_error(self, rank: int, ranks: LabProcesses[Message]) -> Exception:
        step = self.reached[rank].step if rank in self.reached else 0
        code = ranks.exit_code(rank)
        values = {"rank": rank + 1, "all": len(self.jobs), "step": step, "code": code}
        cause = (
            tr("Process {rank} of {all} ended in step {step}, with code {code}.")
            if step
            else tr("Process {rank} of {all} ended before the first step, with code {code}.")
        )
        remedy = tr("The others were ended; nothing is left running. Try it again.")
        return ScaleError(cause.format(**values), remedy, ranks.stderr_tail(rank))


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
    from core.models.model_entry import free_memory

    needed = sum(parts.total for parts in expected) + RUNTIME_BYTES * len(expected)
    if needed > (free := free_memory()):
        raise OutOfMemoryError(
            tr("{processes} processes would take about {needed}; {free} are free.").format(
                processes=len(expected), needed=decimal(needed), free=decimal(free)
            ),
            tr("Take fewer processes, or a smaller model."),
        )
