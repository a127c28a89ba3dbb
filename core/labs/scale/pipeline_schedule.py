"""Pipeline schedules: which device computes which micro-batch when, and with which version of its weights.

GPipe (Huang et al. 2019), 1F1B with a flush (Narayanan et al. 2021), PipeDream (Narayanan et al. 2019).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from decodescope.core.checks.arguments import check_bool, check_integer, check_number, check_text
from decodescope.core.errors import ParameterError
from decodescope.core.labs.arguments import lab_object_list, positive_integer
from decodescope.resources.language import join_names, tr

MAX_BOXES = 100_000
"""Maximum of stages times micro-batches."""
MAX_TIME = 10**12
"""Maximum time, in units."""
SCHEDULE_KINDS = ("gpipe", "1f1b", "pipedream")
WEIGHT_POLICIES = ("stashed", "synced", "latest")
"""Weights of PipeDream's backward pass: those of its forward pass; those of the first stage's forward pass, at every
stage; or the newest.
"""
FORWARD, BACKWARD, UPDATE, SEND, WAIT = "forward", "backward", "update", "send", "wait"


@dataclass(frozen=True)
class Box:
    """The work of one device from `start` to `stop`, in units of time; devices and micro-batches count from 0.

    `kind` is forward, backward, update or send, and in measurements also wait; `version` is the number of updates of
    the weights that it uses (or makes).
    """

    device: int
    start: float
    stop: float
    kind: str
    micro_batch: int
    version: int

    def check(self) -> None:
        """Raise ParameterError if a field is invalid."""
        check_integer("device", self.device, 0, MAX_BOXES)
        check_number("start", self.start, 0, MAX_TIME)
        check_number("stop", self.stop, 0, MAX_TIME)
        check_text("kind", self.kind)


def schedule(
    stages: int, micro_batches: int, kind: str = "gpipe", *, forward: float = 1, backward: float = 2,
    update: float = 0, hop: float = 0, weights: str = "stashed",
) -> tuple[Box, ...]:  # fmt: skip
    """Return the boxes of one batch, sorted by start and device. `hop` is the transfer time between devices.

    GPipe and 1F1B update once, after the last backward; PipeDream after every backward. Raises ParameterError.
    """
    _check_arguments(stages, micro_batches, kind, weights)
    for name, time in (("forward", forward), ("backward", backward), ("update", update), ("hop", hop)):
        check_number(name, time, 0, MAX_TIME)
    stages, micro_batches = int(stages), int(micro_batches)
    orders = [_task_order(kind, stages - stage, micro_batches) for stage in range(stages)]
    timed = _Scheduler(stages, {FORWARD: forward, BACKWARD: backward, UPDATE: update}, hop)
    boxes = _with_versions(timed.boxes(orders), weights)
    return tuple(sorted(boxes, key=lambda box: (box.start, box.stop, box.device)))


def idle_share(boxes: Sequence[Box], since: float = 0, until: float | None = None) -> float:
    """Return the fraction of all devices' time between two moments without computation; sending does not count as
    computing.

    Raises ParameterError.
    """
    boxes = lab_object_list("boxes", boxes, Box)
    for box in boxes:
        box.check()
    check_number("since", since, 0, MAX_TIME)
    if until is not None:
        check_number("until", until, 0, MAX_TIME)
    end = max((box.stop for box in boxes), default=0.0) if until is None else until
    devices = len({box.device for box in boxes})
    total = devices * (end - since)
    busy = sum(max(0.0, min(box.stop, end) - max(box.start, since)) for box in boxes if box.kind not in (SEND, WAIT))
    return 1 - busy / total if total > 0 else 0.0


def max_versions(stages: int, micro_batches: int, weights: str = "stashed") -> tuple[int, ...]:
    """Return the maximum number of weight versions that each PipeDream stage holds, including the newest.

    It is the number of micro-batches in flight, less for short batches. With vertical sync all stages hold as many as
    the first.
    """
    if weights == "latest":
        return (1,) * stages
    ahead = [min(stages - (0 if weights == "synced" else stage), micro_batches) for stage in range(stages)]
    return tuple(min(count, micro_batches - count + 2) for count in ahead)


Task = tuple[str, int]
"""Kind and micro-batch."""


def _task_order(kind: str, depth: int, count: int) -> list[Task]:
    """Return a device's tasks in order; `depth` is the number of stages from this one to the last."""
    ahead = count if kind == "gpipe" else min(depth, count)
    order = [(FORWARD, number) for number in range(ahead)]
    for number in range(count):
        order.append((BACKWARD, number))
        if kind == "pipedream":
            order.append((UPDATE, number))
        if ahead + number < count:
            order.append((FORWARD, ahead + number))
    return order if kind == "pipedream" else [*order, (UPDATE, count - 1)]


class _Scheduler:
    """Computes the start of each task: when its device is free and its input has arrived."""

    def __init__(self, stages: int, durations: dict[str, float], hop: float) -> None:
        self._stages, self._durations, self._hop = stages, durations, hop
        self._done: dict[tuple[int, Task], float] = {}
        self._free = [0.0] * stages

    def boxes(self, orders: Sequence[Sequence[Task]]) -> Iterator[Box]:
        """Yield the boxes of the tasks, each device's in its own order; these orders have no deadlock."""
        waiting = [list(reversed(order)) for order in orders]
        while any(waiting):
            for device, tasks in enumerate(waiting):
                while tasks and (ready := self._ready_time(device, tasks[-1])) is not None:
                    yield from self._start_task(device, tasks.pop(), ready)

    def _ready_time(self, device: int, task: Task) -> float | None:
        """Return when the task's input is available; None while unknown."""
        kind, number = task
        if kind == UPDATE or (kind == FORWARD and device == 0):
            return 0.0
        if kind == BACKWARD and device == self._stages - 1:
            return self._done.get((device, (FORWARD, number)))
        before = self._done.get((device + (1 if kind == BACKWARD else -1), task))
        return None if before is None else before + self._hop

    def _start_task(self, device: int, task: Task, ready: float) -> Iterator[Box]:
        kind, number = task
        start = max(self._free[device], ready)
        stop = self._free[device] = self._done[device, task] = start + self._durations[kind]
        yield Box(device, start, stop, kind, number, 0)
        is_last = device == (self._stages - 1 if kind == FORWARD else 0)
        if self._hop and kind != UPDATE and not is_last:
            yield Box(device, stop, stop + self._hop, SEND, number, 0)


def _with_versions(boxes: Iterable[Box], weights: str) -> Iterator[Box]:
    """Yield each box with the weight version it uses. Boxes arrive in each device's order, the first device's forward
    first.
    """
    updates: dict[int, int] = {}
    used: dict[tuple[int, int], int] = {}
    for box in boxes:
        now = updates.get(box.device, 0)
        if box.kind == UPDATE:
            now = updates[box.device] = now + 1
        elif box.kind == FORWARD:
            now = used[0, box.micro_batch] if weights == "synced" and box.device else now
            used[box.device, box.micro_batch] = now
        elif box.kind == SEND or weights != "latest":
            now = used[box.device, box.micro_batch]
        yield Box(box.device, box.start, box.stop, box.kind, box.micro_batch, now)


def _check_arguments(stages: int, micro_batches: int, kind: str, weights: str) -> None:
    for name, value, known in (("kind", kind, SCHEDULE_KINDS), ("weights", weights, WEIGHT_POLICIES)):
        check_text(name, value)
        if value not in known:
            raise ParameterError(
                tr("Unknown schedule {name!r}.").format(name=value),
                tr("Choose one of {names}.").format(names=join_names(known)),
                name,
            )
    boxes = positive_integer("stages", stages) * positive_integer("micro_batches", micro_batches)
    check_number("stages", stages, 1, MAX_TIME)
    check_number("micro_batches", micro_batches, 1, MAX_TIME)
    if boxes > MAX_BOXES:
        raise ParameterError(
            tr("{boxes:,} boxes are too many to draw.").format(boxes=boxes),
            tr("Stages times micro-batches must be at most {most:,}.").format(most=MAX_BOXES),
            "micro_batches",
        )


MAX_MICRO_BATCHES = 16


@dataclass(frozen=True)
class Options:
    """Options of a pipeline run.

    `recompute`: GPipe and 1F1B keep only a stage's input and recompute the rest in the backward pass. `weights`: the
    weights of PipeDream's backward pass (one of `pipeline_schedule.WEIGHT_POLICIES`).
    """

    micro_batches: int = 4
    recompute: bool = False
    weights: str = "stashed"

    def check(self) -> None:
        """Raise ParameterError if a field is invalid."""
        if positive_integer("micro_batches", self.micro_batches) > MAX_MICRO_BATCHES:
            raise ParameterError(
                tr("At most {most} micro-batches are supported.").format(most=MAX_MICRO_BATCHES),
                parameter="micro_batches",
            )
        check_bool("recompute", self.recompute)
        check_text("weights", self.weights)
        if self.weights not in WEIGHT_POLICIES:
            raise ParameterError(
                tr("{name!r} is not a choice of weights for the backward pass.").format(name=self.weights),
                tr("Choose one of {names}.").format(names=join_names(WEIGHT_POLICIES)),
                "weights",
            )
