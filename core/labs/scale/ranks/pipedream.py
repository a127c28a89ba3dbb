"""A real PipeDream with its weight versions, and its reference result in one process."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.func import functional_call

from decodescope.core.labs.processes.distributed import join_process_group, local_bytes
from decodescope.core.labs.scale.pipeline_schedule import BACKWARD, FORWARD, UPDATE, Box, schedule
from decodescope.core.labs.scale.ranks.instrumentation import BoxRecorder, SavedTensorCounter, TrafficHook, now_ms
from decodescope.core.labs.scale.ranks.model_stages import ModelStage
from decodescope.core.labs.scale.ranks.rank_messages import ByteCounts, Message, MilestoneReached, RankJob
from decodescope.core.labs.scale.ranks.reference_training import load_for_training, random_texts, relative_difference

SGD_RATE = 0.01
"""ν of the definition, which uses plain SGD."""
Weights = list[Tensor]


@dataclass
class PipedreamReference:
    """The reference result.

    `losses` of each batch; `gradients[stage][update]` of the first; `costs`: milliseconds of a micro-batch's forward,
    backward and update, over all stages; `unstashed_error`: how far the gradients of the first batch are from those of
    the forward pass's weights, relative to the largest.
    """

    losses: list[float]
    gradients: list[list[Weights]]
    costs: tuple[float, float, float]
    unstashed_error: float


def compute_reference(stages: Sequence[ModelStage], ids: Tensor, weights: str, batches: int) -> PipedreamReference:
    """Train on texts [micro-batches, length + 1] for at least one batch; `weights` is one of
    `pipeline_schedule.WEIGHT_POLICIES`.
    """
    boxes = schedule(len(stages), len(ids), "pipedream", weights=weights)
    first = walk = _ReferenceBatch(stages, ids)
    losses = []
    for batch in range(batches):
        walk = _ReferenceBatch(stages, ids)
        for box in boxes:
            walk.run_box(box)
        first = first if batch else walk
        losses.append(walk.loss / len(ids))
    costs = [walk.seconds_by_kind[kind] / len(ids) for kind in (FORWARD, BACKWARD, UPDATE)]
    return PipedreamReference(losses, first.gradients, (costs[0], costs[1], costs[2]), first.unstashed_error)


@dataclass
class _MicroBatchRecord:
    """A micro-batch on one stage: input, output and weight version; then its gradient as sent back, and as it would be
    if every stage used its forward pass's weights.
    """

    input: Tensor
    output: Tensor
    version: int
    gradient: Tensor | None = None
    true_gradient: Tensor | None = None


@dataclass
class _ReferenceBatch:
    """One batch. Each box first loads the weight version it needs into its stage."""

    stages: Sequence[ModelStage]
    ids: Tensor
    loss: float = 0.0
    unstashed_error: float = 0.0
    seconds_by_kind: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def __post_init__(self) -> None:
        self.gradients: list[list[Weights]] = [[] for _ in self.stages]
        self._versions = [[[part.detach().clone() for part in stage.parameters()]] for stage in self.stages]
        self._records: dict[tuple[int, int], _MicroBatchRecord] = {}

    def run_box(self, box: Box) -> None:
        """Run one box; its inputs must be ready."""
        began = now_ms()
        {FORWARD: self._forward, BACKWARD: self._backward, UPDATE: self._update}[box.kind](box)
        self.seconds_by_kind[box.kind] += now_ms() - began

    def _forward(self, box: Box) -> None:
        stage, text = self.stages[box.device], self.ids[box.micro_batch : box.micro_batch + 1]
        self._load(box.device, box.version)
        before = self._records.get((box.device - 1, box.micro_batch))
        given = text[:, :-1] if before is None else before.output.detach().requires_grad_()
        made = stage(given)
        if stage.head is not None:
            made = stage.loss(made, text[:, 1:])
            self.loss += float(made.detach())
        self._records[box.device, box.micro_batch] = _MicroBatchRecord(given, made, box.version)

    def _backward(self, box: Box) -> None:
        way = self._records[box.device, box.micro_batch]
        next_record = self._records.get((box.device + 1, box.micro_batch))
        given = None if next_record is None else next_record.gradient
        if (
            given is not (true := None if next_record is None else next_record.true_gradient)
            or way.version != box.version
        ):
            self._load(box.device, way.version)
            right, way.true_gradient = self._gradients(box.device, way, true)
        else:
            right = []
        self._load(box.device, box.version)
        found, way.gradient = self._gradients(box.device, way, given)
        if right:
            self.unstashed_error = max(self.unstashed_error, relative_difference(found, right))
        else:
            way.true_gradient = way.gradient
        self.gradients[box.device].append(found)

    def _update(self, box: Box) -> None:
        """Apply w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − ν ∇f, whichever versions f used."""
        versions, gradient = self._versions[box.device], self.gradients[box.device][-1]
        assert len(versions) == box.version
        versions.append([one - SGD_RATE * by for one, by in zip(versions[-1], gradient, strict=True)])
        self._load(box.device, box.version)

    def _gradients(
        self, device: int, record: _MicroBatchRecord, gradient: Tensor | None
    ) -> tuple[Weights, Tensor | None]:
        """Return the gradients of the stage's parameters and of its input."""
        inputs = [*self.stages[device].parameters(), *([record.input] if device else [])]
        found = list(torch.autograd.grad(record.output, inputs, gradient, retain_graph=True))
        return found, found.pop() if device else None

    def _load(self, device: int, version: int) -> None:
        """Load a version without autograd's knowledge, so that a pending graph sees the new values, as in unstashed
        PipeDream.
        """
        for parameter, numbers in zip(self.stages[device].parameters(), self._versions[device][version], strict=True):
            parameter.data.copy_(numbers)


class WeightVersions:
    """Weights by number of updates.

    A version without further use is dropped; if it is the newest, it is updated in place, so without stashing there is
    only one version.
    """

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self.newest = 0
        self._weights = {0: [weight.detach().requires_grad_() for weight in weights]}
        self._uses_left: Counter[int] = Counter()
        self.peak_extra_bytes = 0
        """Maximum bytes, since `begin`, of all versions except the newest."""

    def begin(self, boxes: Iterable[Box]) -> None:
        """Start a batch: count the uses of each version; the newest becomes version 0."""
        self._weights = {0: self._weights[self.newest]}
        self._uses_left = Counter(box.version for box in boxes if box.kind != UPDATE)
        self.newest = self.peak_extra_bytes = 0

    def __iter__(self) -> Iterator[Tensor]:
        """Iterate over the tensors of all versions."""
        return (weight for version in self._weights.values() for weight in version)

    def use_version(self, version: int) -> list[Tensor]:
        """Return the weights of a version, as leaves of a new graph, and count one use."""
        self._uses_left[version] -= 1
        return self._weights[version]

    def update(self, gradients: Sequence[Tensor], rate: float) -> None:
        """Make a new version: the newest minus `rate` times the gradients."""
        old = self._weights[self.newest]
        if self._uses_left[self.newest] > 0:
            new = [
                torch.sub(one.detach(), by, alpha=rate).requires_grad_() for one, by in zip(old, gradients, strict=True)
            ]
        else:
            new = self._weights.pop(self.newest)
            for weight, gradient in zip(new, gradients, strict=True):
                weight.data.sub_(
                    gradient, alpha=rate
                )  # a pending graph may hold it, which is intended without stashing
        self.newest += 1
        self._weights[self.newest] = new
        self.drop_unused()
        self.peak_extra_bytes = max(self.peak_extra_bytes, local_bytes(self) - local_bytes(new))

    def drop_unused(self) -> None:
        """Drop the versions without further use."""
        for version in [number for number in self._weights if number != self.newest and self._uses_left[number] <= 0]:
            del self._weights[version]


class StageWithLoss(nn.Module):
    """A stage, with its loss if it is the last."""

    def __init__(self, stage: ModelStage) -> None:
        super().__init__()
        self.stage = stage

    def forward(self, inputs: Tensor, right: Tensor | None) -> Tensor:
        """Return the hidden states to send, or the loss."""
        hidden: Tensor = self.stage(inputs)
        return hidden if right is None else self.stage.loss(hidden, right)


class PendingMicroBatch(NamedTuple):
    """A micro-batch between its forward and backward pass."""

    input: Tensor
    output: Tensor
    weights: list[Tensor]


class PipedreamRank:
    """One process of the pipeline. `gradients`: those of each update of the current batch."""

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
        """Run forward and backward of micro-batches [micro-batches, length + 1]; return the mean loss, 0 except on the
        last stage.
        """
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
            self.versions.use_version(box.version)  # its own version, or without stashing the current one
            given, made, weights = self._in_flight.pop(box.micro_batch)
            inputs = [*weights, given] if self._job.rank else weights
            found = list(torch.autograd.grad(made, inputs, gradient))
        if self._job.rank:
            self._send(found.pop(), self._job.rank - 1)
        self.gradients.append(found)

    def _update(self, box: Box, counter: SavedTensorCounter | None) -> None:
        with self.clock.box(box.kind, box.micro_batch, box.version):
            self.versions.drop_unused()
            self.versions.update(self.gradients[-1], SGD_RATE)
        if counter is not None:  # only memory is measured, so gradients that are not compared are released
            counter.set_parameters(self.versions)
            del self.gradients[:-1]

    def _receive(self, other: int, like: Tensor) -> Tensor:
        """Receive hidden states, or their gradient, from a neighbour."""
        self.clock.start_waiting()
        found = torch.empty(1, like.shape[1], self.stage.width)
        dist.recv(found, other)
        return found.requires_grad_(other < self._job.rank)

    def _send(self, tensor: Tensor, other: int) -> None:
        """Send without waiting for delivery."""
        self._sent.append((dist.isend(tensor, other), tensor))


def train_pipedream(job: RankJob, send_message: Callable[[Message], None]) -> None:
    """Train `job.steps` batches with the others; compare the gradients of the first and count the bytes of the last."""
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
    """Return the largest difference over all updates of the first batch."""
    return max(relative_difference(*both) for both in zip(line.gradients, reference.gradients[rank], strict=True))


def _count_bytes(
    line: PipedreamRank, ids: Tensor, losses: list[float], reference: PipedreamReference, max_difference: float
) -> ByteCounts:
    """Run and count the last batch, which all ranks start together."""
    line.gradients.clear()
    dist.barrier()
    line.clock.clear()
    with TrafficHook() as hook, SavedTensorCounter(line.versions) as saved_tensors:
        losses.append(line.run_batch(ids, saved_tensors))
    parts = {
        "parameters": local_bytes(line.versions),
        "gradients": local_bytes(line.gradients[-1]),
        "activations": saved_tensors.peak_bytes,
        "buffers": line.versions.peak_extra_bytes,
    }
    boxes = line.clock.boxes
    return ByteCounts(
        parts, dict(hook.bytes), losses if line.stage.head is not None else [], reference.losses,
        (boxes[-1].stop - boxes[0].start) / 1000, difference=max_difference, boxes=boxes, costs=reference.costs,
        unstashed_error=reference.unstashed_error,
    )  # fmt: skip
