"""PipeDream for real: an update behind every micro-batch, nobody waits for the others; on torch.distributed's send and
receive, because no engine of torch keeps versions of the weights."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.func import functional_call

from core.labs.processes.process_group import join
from core.labs.processes.shard_bytes import held
from core.labs.scale.pipeline_schedule import BACKWARD, FORWARD, Box, schedule
from core.labs.scale.ranks.model_stages import ModelStage
from core.labs.scale.ranks.pipedream_reference import SGD_RATE, PipedreamReference, define
from core.labs.scale.ranks.rank_messages import BytesCounted, Message, MilestoneReached, RankJob
from core.labs.scale.ranks.rank_setup import loaded, texts
from core.labs.scale.ranks.saved_tensors import SavedTensorCounter
from core.labs.scale.ranks.shared_clock import Clock
from core.labs.scale.ranks.single_process import difference
from core.labs.scale.ranks.traffic_counter import TrafficHook
from core.labs.scale.ranks.weight_versions import Versions


class StageWithLoss(nn.Module):
    """A stage with its loss, where it has one."""

    def __init__(self, stage: ModelStage) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, given: Tensor, right: Tensor | None) -> Tensor:
        """What is handed on, or the loss."""
        hidden: Tensor = self.stage(given)
        return hidden if right is None else self.stage.loss(hidden, right)


class PendingMicroBatch(NamedTuple):
    """A micro-batch between forward and backward."""

    given: Tensor
    made: Tensor
    weights: list[Tensor]


class PipedreamRank:
    """One process's place in the line. `gradients` of each update since the batch began, where they are wanted."""

    def __init__(self, stage: ModelStage, job: RankJob) -> None:
        self.stage, self._job = stage, job
        self._work = StageWithLoss(stage)
        self._names = [name for name, _ in self._work.named_parameters()]
        self.versions = Versions(self._work.parameters())
        self.clock = Clock(job.rank)
        self.gradients: list[list[Tensor]] = []
        self._under_way: dict[int, PendingMicroBatch] = {}
        self._sent: list[tuple[dist.Work | None, Tensor]] = []
        options = job.options
        boxes = schedule(job.processes, options.micro_batches, job.scheme, weights=options.weights)
        self._boxes = [box for box in boxes if box.device == job.rank]

    def go(self, ids: Tensor, kept: SavedTensorCounter | None = None) -> float:
        """Every micro-batch of [micro-batches, length + 1] there and back; the mean loss, 0 but on the last stage."""
        given, right = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
        self.versions.begin(self._boxes)
        self.gradients.clear()
        losses = 0.0
        for box in self._boxes:
            if box.kind == FORWARD:
                losses += self._forward(box, given, right)
            elif box.kind == BACKWARD:
                self._backward(box)
            else:
                self._update(box, kept)
        for work, _ in self._sent:
            if work is not None:
                work.wait()
        self._sent.clear()
        return losses / len(ids)

    def _forward(self, box: Box, ids: Tensor, ends: Tensor) -> float:
        place = slice(box.micro_batch, box.micro_batch + 1)
        given = self._come(self._job.rank - 1, ids) if self._job.rank else ids[place]
        right = ends[place] if self.stage.head is not None else None
        with self.clock.box(FORWARD, box.micro_batch, box.version):
            weights = self.versions.of(box.version)
            made = functional_call(self._work, dict(zip(self._names, weights, strict=True)), (given, right))
        self._under_way[box.micro_batch] = PendingMicroBatch(given, made, weights)
        if right is None:
            self._hand(made.detach(), self._job.rank + 1)
        return float(made.detach()) if right is not None else 0.0

    def _backward(self, box: Box) -> None:
        is_last = self.stage.head is not None
        gradient = None if is_last else self._come(self._job.rank + 1, self._under_way[box.micro_batch].given)
        with self.clock.box(BACKWARD, box.micro_batch, box.version):
            self.versions.of(box.version)  # its own, or, without stashing, what its own has become
            given, made, weights = self._under_way.pop(box.micro_batch)
            wanted = [*weights, given] if self._job.rank else weights
            found = list(torch.autograd.grad(made, wanted, gradient))
        if self._job.rank:
            self._hand(found.pop(), self._job.rank - 1)
        self.gradients.append(found)

    def _update(self, box: Box, kept: SavedTensorCounter | None) -> None:
        with self.clock.box(box.kind, box.micro_batch, box.version):
            self.versions.give_up()
            self.versions.update(self.gradients[-1], SGD_RATE)
        if kept is not None:  # what is measured is memory: gradients that are not compared are let go
            kept.know(self.versions)
            del self.gradients[:-1]

    def _come(self, other: int, like: Tensor) -> Tensor:
        """Hidden states, or their gradient, from a neighbour."""
        self.clock.waits()
        found = torch.empty(1, like.shape[1], self.stage.width)
        dist.recv(found, other)
        return found.requires_grad_(other < self._job.rank)

    def _hand(self, tensor: Tensor, other: int) -> None:
        """Without waiting until it is taken."""
        self._sent.append((dist.isend(tensor, other), tensor))


def run(job: RankJob, tell: Callable[[Message], None]) -> None:
    """Train `job.steps` batches with the others; every gradient of the first is compared, the last is counted."""
    model = loaded(job).model
    ids = texts(model, job.options.micro_batches, job.length + 1)
    if job.rank == 0:
        tell(MilestoneReached("alone"))
    stages = [ModelStage(deepcopy(model), number, job.processes) for number in range(job.processes)]
    right = define(stages, ids, job.options.weights, job.steps if job.rank == 0 else 1)
    del stages
    tell(MilestoneReached("joins"))
    join(job.rank, job.processes, job.port)
    line = PipedreamRank(ModelStage(model, job.rank, job.processes), job)
    losses, differs = [], 0.0
    for step in range(job.steps - 1):
        tell(MilestoneReached("step", step + 1))
        losses.append(line.go(ids))
        if not step:
            differs = _differs(line, right, job.rank)
    tell(MilestoneReached("step", job.steps))
    tell(_counted(line, ids, losses, right, differs))
    dist.barrier()


def _differs(line: PipedreamRank, right: PipedreamReference, rank: int) -> float:
    """Over all updates of the first batch."""
    return max(difference(*both) for both in zip(line.gradients, right.gradients[rank], strict=True))


def _counted(
    line: PipedreamRank, ids: Tensor, losses: list[float], right: PipedreamReference, differs: float
) -> BytesCounted:
    """The last batch, begun by all at once."""
    line.gradients.clear()
    dist.barrier()
    line.clock.clear()
    with TrafficHook() as hook, SavedTensorCounter(line.versions) as kept:
        losses.append(line.go(ids, kept))
    parts = {
        "parameters": held(line.versions), "gradients": held(line.gradients[-1]), "activations": kept.most,
        "buffers": line.versions.most,
    }  # fmt: skip
    boxes = line.clock.boxes
    return BytesCounted(
        parts, dict(hook.bytes), losses if line.stage.head is not None else [], right.losses,
        (boxes[-1].stop - boxes[0].start) / 1000, difference=differs, boxes=boxes, costs=right.costs,
        stray=right.stray,
    )  # fmt: skip
