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

from core.labs.processes.process_group import join_process_group
from core.labs.processes.shard_bytes import local_bytes
from core.labs.scale.pipeline_schedule import BACKWARD, FORWARD, Box, schedule
from core.labs.scale.ranks.model_stages import ModelStage
from core.labs.scale.ranks.pipedream_reference import SGD_RATE, PipedreamReference, compute_reference
from core.labs.scale.ranks.rank_messages import BytesCounted, Message, MilestoneReached, RankJob
from core.labs.scale.ranks.rank_setup import load_for_training, random_texts
from core.labs.scale.ranks.saved_tensors import SavedTensorCounter
from core.labs.scale.ranks.shared_clock import BoxRecorder
from core.labs.scale.ranks.single_process import relative_difference
from core.labs.scale.ranks.traffic_counter import TrafficHook
from core.labs.scale.ranks.weight_versions import WeightVersions


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

    input: Tensor
    output: Tensor
    weights: list[Tensor]


class PipedreamRank:
    """One process's place in the line. `gradients` of each update since the batch began, where they are wanted."""

    def __init__(self, stage: ModelStage, job: RankJob) -> None:
        self.stage, self._job = stage, job
        self._work = StageWithLoss(stage)
        self._names = [name for name, _ in self._work.named_parameters()]
        self.versions = WeightVersions(self._work.parameters())
        self.clock = BoxRecorder(job.rank)
        self.gradients: list[list[Tensor]] = []
        self._in_flight: dict[int, PendingMicroBatch] = {}
        self._sent: list[tuple[dist.Work | None, Tensor]] = []
        options = job.options
        boxes = schedule(job.processes, options.micro_batches, job.scheme, weights=options.weights)
        self._boxes = [box for box in boxes if box.device == job.rank]

    def run_batch(self, ids: Tensor, counter: SavedTensorCounter | None = None) -> float:
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
                self._update(box, counter)
        for work, _ in self._sent:
            if work is not None:
                work.wait()
        self._sent.clear()
        return losses / len(ids)

    def _forward(self, box: Box, ids: Tensor, ends: Tensor) -> float:
        place = slice(box.micro_batch, box.micro_batch + 1)
        given = self._receive(self._job.rank - 1, ids) if self._job.rank else ids[place]
        right = ends[place] if self.stage.head is not None else None
        with self.clock.box(FORWARD, box.micro_batch, box.version):
            weights = self.versions.use_version(box.version)
            made = functional_call(self._work, dict(zip(self._names, weights, strict=True)), (given, right))
        self._in_flight[box.micro_batch] = PendingMicroBatch(given, made, weights)
        if right is None:
            self._send(made.detach(), self._job.rank + 1)
        return float(made.detach()) if right is not None else 0.0

    def _backward(self, box: Box) -> None:
        is_last = self.stage.head is not None
        gradient = None if is_last else self._receive(self._job.rank + 1, self._in_flight[box.micro_batch].input)
        with self.clock.box(BACKWARD, box.micro_batch, box.version):
            self.versions.use_version(box.version)  # its own, or, without stashing, what its own has become
            given, made, weights = self._in_flight.pop(box.micro_batch)
            wanted = [*weights, given] if self._job.rank else weights
            found = list(torch.autograd.grad(made, wanted, gradient))
        if self._job.rank:
            self._send(found.pop(), self._job.rank - 1)
        self.gradients.append(found)

    def _update(self, box: Box, counter: SavedTensorCounter | None) -> None:
        with self.clock.box(box.kind, box.micro_batch, box.version):
            self.versions.drop_unused()
            self.versions.update(self.gradients[-1], SGD_RATE)
        if counter is not None:  # what is measured is memory: gradients that are not compared are let go
            counter.set_parameters(self.versions)
            del self.gradients[:-1]

    def _receive(self, other: int, like: Tensor) -> Tensor:
        """Hidden states, or their gradient, from a neighbour."""
        self.clock.start_waiting()
        found = torch.empty(1, like.shape[1], self.stage.width)
        dist.recv(found, other)
        return found.requires_grad_(other < self._job.rank)

    def _send(self, tensor: Tensor, other: int) -> None:
        """Without waiting until it is taken."""
        self._sent.append((dist.isend(tensor, other), tensor))


def train_pipedream(job: RankJob, send_message: Callable[[Message], None]) -> None:
    """Train `job.steps` batches with the others; every gradient of the first is compared, the last is counted."""
    model = load_for_training(job).model
    ids = random_texts(model, job.options.micro_batches, job.length + 1)
    if job.rank == 0:
        send_message(MilestoneReached("alone"))
    stages = [ModelStage(deepcopy(model), number, job.processes) for number in range(job.processes)]
    right = compute_reference(stages, ids, job.options.weights, job.steps if job.rank == 0 else 1)
    del stages
    send_message(MilestoneReached("joins"))
    join_process_group(job.rank, job.processes, job.port)
    line = PipedreamRank(ModelStage(model, job.rank, job.processes), job)
    losses, differs = [], 0.0
    for step in range(job.steps - 1):
        send_message(MilestoneReached("step", step + 1))
        losses.append(line.run_batch(ids))
        if not step:
            differs = _max_difference(line, right, job.rank)
    send_message(MilestoneReached("step", job.steps))
    send_message(_count_bytes(line, ids, losses, right, differs))
    dist.barrier()


def _max_difference(line: PipedreamRank, reference: PipedreamReference, rank: int) -> float:
    """Over all updates of the first batch."""
    return max(relative_difference(*both) for both in zip(line.gradients, reference.gradients[rank], strict=True))


def _count_bytes(
    line: PipedreamRank, ids: Tensor, losses: list[float], reference: PipedreamReference, max_difference: float
) -> BytesCounted:
    """The last batch, begun by all at once."""
    line.gradients.clear()
    dist.barrier()
    line.clock.clear()
    with TrafficHook() as hook, SavedTensorCounter(line.versions) as kept:
        losses.append(line.run_batch(ids, kept))
    parts = {
        "parameters": local_bytes(line.versions), "gradients": local_bytes(line.gradients[-1]), "activations": kept.peak_bytes,
        "buffers": line.versions.peak_extra_bytes,
    }  # fmt: skip
    boxes = line.clock.boxes
    return BytesCounted(
        parts, dict(hook.bytes), losses if line.stage.head is not None else [], reference.losses,
        (boxes[-1].stop - boxes[0].start) / 1000, difference=max_difference, boxes=boxes, costs=reference.costs,
        unstashed_error=reference.unstashed_error,
    )  # fmt: skip
