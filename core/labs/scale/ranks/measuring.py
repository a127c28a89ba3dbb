"""`measure`: a scheme for real, its bytes beside those that were reckoned. Importing this imports no torch."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import OutOfMemoryError, ParameterError, ScaleError
from core.labs.scale.parts import Parts
from core.labs.scale.ranks.messages import Counted, Failed, Job, Reached
from core.labs.scale.ranks.predicted import Size, predicted, sent
from core.labs.scale.ranks.processes import Ranks
from core.labs.scale.states import checked, traffic
from core.labs.scale.words import decimal
from resources.language import tr

MOST = 4
"""Processes."""
STEPS = 3
LENGTH = 32
"""Tokens of each text."""
RUNTIME = 450_000_000
"""Bytes that a process takes before it holds a model: Python, torch, transformers."""
_LOOK_S = 0.1


@dataclass(frozen=True)
class Progress:
    """A process has come so far: `starts`, `alone`, `joins`, `step`. Ranks count from 0, steps from 1."""

    rank: int
    stage: str
    step: int
    steps: int
    process: int
    """The system's id of it."""


@dataclass(frozen=True)
class Measured:
    """What was counted in the last step, by rank, beside what was reckoned."""

    scheme: str
    ranks: tuple[Parts, ...]
    predicted: tuple[Parts, ...]
    traffic: tuple[int, ...]
    """Bytes that each rank sent, an all-reduce counted twice."""
    predicted_traffic: int
    """Of the engine that was used."""
    paper_traffic: int
    """Of ZeRO's paper."""
    losses: tuple[float, ...]
    alone: tuple[float, ...]
    """The same steps by one process that reads all texts."""
    seconds: float

    @property
    def loss(self) -> float:
        """Of the last step."""
        return self.losses[-1]


def measure(model_name: str, scheme: str = "ddp", processes: int = 2, *, port: int = 0) -> Measured:
    """Train a model a few steps in that many processes, and count. Raises TokenscopeError."""
    for event in measuring(model_name, scheme, processes, port=port):
        if isinstance(event, Measured):
            return event
    raise ScaleError(tr("The processes ended before anything was measured."))


def measuring(
    model_name: str, scheme: str = "ddp", processes: int = 2, *, port: int = 0, cancel: threading.Event | None = None
) -> Iterator[Progress | Measured]:
    """The same as a stream, which ends without a result once `cancel` is set. No process outlives it.

    Raises ParameterError, ModelError, OutOfMemoryError before anything is started; ScaleError where a process dies.
    """
    checked(1, processes, scheme)
    if processes > MOST:
        raise ParameterError(tr("At most {most} processes are started.").format(most=MOST), parameter="processes")
    folder, sizes = _read(model_name)
    expected = predicted(sizes, processes, scheme)
    _check_room(expected)
    place = _free_port(port)
    jobs = [Job(str(folder), scheme, rank, processes, place, STEPS, LENGTH) for rank in range(processes)]
    watch = _Watch(jobs, cancel or threading.Event())
    yield from watch.follow()
    if len(watch.counted) == processes:
        yield _result(scheme, watch.counted, expected, sizes)


@dataclass
class _Watch:
    """Listens until every rank has counted, one has failed, or somebody wants it to stop."""

    jobs: list[Job]
    cancel: threading.Event
    counted: dict[int, Counted] = field(default_factory=dict)
    reached: dict[int, Reached] = field(default_factory=dict)

    def follow(self) -> Iterator[Progress]:
        """Progress of all. Raises ScaleError, OutOfMemoryError."""
        with Ranks(self.jobs) as ranks:
            while len(self.counted) < len(self.jobs) and not self.cancel.is_set():
                told = ranks.hear(_LOOK_S)
                match told:
                    case (rank, Reached() as reached):
                        self.reached[rank] = reached
                        yield Progress(rank, reached.stage, reached.step, STEPS, ranks.ids[rank])
                    case (rank, Counted() as counted):
                        self.counted[rank] = counted
                    case (rank, Failed() as failed):
                        raise self._failed(rank, failed, ranks)
                    case (rank, None) if rank not in self.counted:
                        raise self._died(rank, ranks)

    def _failed(self, rank: int, failed: Failed, ranks: Ranks) -> Exception:
        if failed.is_memory:
            return OutOfMemoryError(
                tr("Memory ended in process {rank} of {all}.").format(rank=rank + 1, all=len(self.jobs)),
                tr("Take fewer processes, or a smaller model."),
                ranks.wrote(rank),
            )
        return ScaleError(
            tr("Process {rank} of {all} could not go on: {words}").format(
                rank=rank + 1, all=len(self.jobs), words=failed.words.splitlines()[0]
            ),
            tr("The others were ended; nothing is left running. Try it again."),
            ranks.wrote(rank),
        )

    def _died(self, rank: int, ranks: Ranks) -> Exception:
        step = self.reached[rank].step if rank in self.reached else 0
        code = ranks.code(rank)
        values = {"rank": rank + 1, "all": len(self.jobs), "step": step, "code": code}
        cause = (
            tr("Process {rank} of {all} ended in step {step}, with code {code}.")
            if step
            else tr("Process {rank} of {all} ended before the first step, with code {code}.")
        )
        remedy = tr("The others were ended; nothing is left running. Try it again.")
        return ScaleError(cause.format(**values), remedy, ranks.wrote(rank))


def _read(model_name: str) -> tuple[Path, list[Size]]:
    """The model's folder, and the sizes of its tensors, each once."""
    from core.models.blueprint import blueprint

    if getattr(sys, "frozen", False):
        raise ScaleError(
            tr("A packed program cannot start other Python processes."),
            tr("Install Tokenscope with pip to run this; the plan works everywhere."),
        )
    model = blueprint(model_name, device="cpu", dtype="float32")
    assert model.path is not None
    return model.path, [tuple(parameter.shape) for parameter in model.model.parameters()]


def _check_room(expected: tuple[Parts, ...]) -> None:
    from core.models.room import free_memory

    needed = sum(parts.total for parts in expected) + RUNTIME * len(expected)
    if needed > (free := free_memory()):
        raise OutOfMemoryError(
            tr("{processes} processes would take about {needed}; {free} are free.").format(
                processes=len(expected), needed=decimal(needed), free=decimal(free)
            ),
            tr("Take fewer processes, or a smaller model."),
        )


def _free_port(port: int) -> int:
    """A port of this machine that nobody listens on; 0 for any. Raises ScaleError where it is taken."""
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            raise ScaleError(
                tr("Port {port} of this machine is taken: {reason}.").format(port=port, reason=error.strerror),
                tr("Choose another, or 0 for any that is free."),
            ) from error
        found: int = tried.getsockname()[1]
        return found


def _result(scheme: str, counted: dict[int, Counted], expected: tuple[Parts, ...], sizes: list[Size]) -> Measured:
    ranks = [counted[rank] for rank in sorted(counted)]
    whole = sum(parts.parameters for parts in predicted(sizes, 1, "ddp"))
    return Measured(
        scheme,
        tuple(Parts(**rank.parts) for rank in ranks),
        expected,
        tuple(sum(rank.traffic.values()) for rank in ranks),
        sent(sizes, len(ranks), scheme) if len(ranks) > 1 else 0,
        traffic(whole, len(ranks), scheme),
        tuple(ranks[0].losses),
        tuple(ranks[0].alone),
        max(rank.seconds for rank in ranks),
    )
