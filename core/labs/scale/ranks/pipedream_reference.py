"""What PipeDream is defined to compute, by one process: all stages, every version of their weights, box after box.

Narayanan et al. 2019, "PipeDream: Generalized Pipeline Parallelism for DNN Training", section 3.3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from core.labs.scale.pipeline_schedule import BACKWARD, FORWARD, UPDATE, Box, schedule
from core.labs.scale.ranks.model_stages import ModelStage
from core.labs.scale.ranks.shared_clock import now_ms
from core.labs.scale.ranks.single_process import relative_difference

SGD_RATE = 0.01
"""ν of the definition, which knows no other optimizer."""
Weights = list[Tensor]


@dataclass
class PipedreamReference:
    """`losses` of each batch; `gradients[stage][update]` of the first; milliseconds of a micro-batch forward, backward,
    and of an update, of all stages; `unstashed_error`: how far the gradients of the first batch are from those of the weights
    that went forward, as a share of the greatest."""

    losses: list[float]
    gradients: list[list[Weights]]
    costs: tuple[float, float, float]
    unstashed_error: float


def compute_reference(stages: Sequence[ModelStage], ids: Tensor, weights: str, batches: int) -> PipedreamReference:
    """Train on texts [micro-batches, length + 1], at least one batch; `weights` is one of `timetable.WEIGHTS`."""
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
    """A micro-batch on one stage: what came in, what went out, by which version; then its gradient, as it is handed
    back, and as it would be if every stage went back by the weights that went forward."""

    input: Tensor
    output: Tensor
    version: int
    gradient: Tensor | None = None
    true_gradient: Tensor | None = None


@dataclass
class _ReferenceBatch:
    """One batch. Each stage's parameters are given the numbers of the version that a box asks for."""

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
        """One box after what it needs."""
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
        behind = self._records.get((box.device + 1, box.micro_batch))
        given = None if behind is None else behind.gradient
        if given is not (true := None if behind is None else behind.true_gradient) or way.version != box.version:
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
        """w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − ν ∇f, whichever versions f was seen by."""
        versions, gradient = self._versions[box.device], self.gradients[box.device][-1]
        assert len(versions) == box.version
        versions.append([one - SGD_RATE * by for one, by in zip(versions[-1], gradient, strict=True)])
        self._load(box.device, box.version)

    def _gradients(
        self, device: int, record: _MicroBatchRecord, gradient: Tensor | None
    ) -> tuple[Weights, Tensor | None]:
        """Of the stage's parameters, and of what came in."""
        wanted = [*self.stages[device].parameters(), *([record.input] if device else [])]
        found = list(torch.autograd.grad(record.output, wanted, gradient, retain_graph=True))
        return found, found.pop() if device else None

    def _load(self, device: int, version: int) -> None:
        """Behind autograd's back: a graph that is under way sees the numbers change, as PipeDream's does unstashed."""
        for parameter, numbers in zip(self.stages[device].parameters(), self._versions[device][version], strict=True):
            parameter.data.copy_(numbers)
