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
from core.labs.scale.ranks.shared_clock import now
from core.labs.scale.ranks.single_process import difference

SGD_RATE = 0.01
"""ν of the definition, which knows no other optimizer."""
Weights = list[Tensor]


@dataclass
class PipedreamReference:
    """`losses` of each batch; `gradients[stage][update]` of the first; milliseconds of a micro-batch forward, backward,
    and of an update, of all stages; `stray`: how far the gradients of the first batch are from those of the weights
    that went forward, as a share of the greatest."""

    losses: list[float]
    gradients: list[list[Weights]]
    costs: tuple[float, float, float]
    stray: float


def define(stages: Sequence[ModelStage], ids: Tensor, weights: str, batches: int) -> PipedreamReference:
    """Train on texts [micro-batches, length + 1], at least one batch; `weights` is one of `timetable.WEIGHTS`."""
    boxes = schedule(len(stages), len(ids), "pipedream", weights=weights)
    first = walk = _Walk(stages, ids)
    losses = []
    for batch in range(batches):
        walk = _Walk(stages, ids)
        for box in boxes:
            walk.do(box)
        first = first if batch else walk
        losses.append(walk.loss / len(ids))
    costs = [walk.spent[kind] / len(ids) for kind in (FORWARD, BACKWARD, UPDATE)]
    return PipedreamReference(losses, first.gradients, (costs[0], costs[1], costs[2]), first.stray)


@dataclass
class _MicroBatchRecord:
    """A micro-batch on one stage: what came in, what went out, by which version; then its gradient, as it is handed
    back, and as it would be if every stage went back by the weights that went forward."""

    given: Tensor
    made: Tensor
    version: int
    back: Tensor | None = None
    true: Tensor | None = None


@dataclass
class _Walk:
    """One batch. Each stage's parameters are given the numbers of the version that a box asks for."""

    stages: Sequence[ModelStage]
    ids: Tensor
    loss: float = 0.0
    stray: float = 0.0
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def __post_init__(self) -> None:
        self.gradients: list[list[Weights]] = [[] for _ in self.stages]
        self._versions = [[[part.detach().clone() for part in stage.parameters()]] for stage in self.stages]
        self._ways: dict[tuple[int, int], _MicroBatchRecord] = {}

    def do(self, box: Box) -> None:
        """One box after what it needs."""
        began = now()
        {FORWARD: self._forward, BACKWARD: self._backward, UPDATE: self._update}[box.kind](box)
        self.spent[box.kind] += now() - began

    def _forward(self, box: Box) -> None:
        stage, text = self.stages[box.device], self.ids[box.micro_batch : box.micro_batch + 1]
        self._load(box.device, box.version)
        before = self._ways.get((box.device - 1, box.micro_batch))
        given = text[:, :-1] if before is None else before.made.detach().requires_grad_()
        made = stage(given)
        if stage.head is not None:
            made = stage.loss(made, text[:, 1:])
            self.loss += float(made.detach())
        self._ways[box.device, box.micro_batch] = _MicroBatchRecord(given, made, box.version)

    def _backward(self, box: Box) -> None:
        way = self._ways[box.device, box.micro_batch]
        behind = self._ways.get((box.device + 1, box.micro_batch))
        given = None if behind is None else behind.back
        if given is not (true := None if behind is None else behind.true) or way.version != box.version:
            self._load(box.device, way.version)
            right, way.true = self._gradients(box.device, way, true)
        else:
            right = []
        self._load(box.device, box.version)
        found, way.back = self._gradients(box.device, way, given)
        if right:
            self.stray = max(self.stray, difference(found, right))
        else:
            way.true = way.back
        self.gradients[box.device].append(found)

    def _update(self, box: Box) -> None:
        """w⁽ᵗ⁺¹⁾ = w⁽ᵗ⁾ − ν ∇f, whichever versions f was seen by."""
        versions, gradient = self._versions[box.device], self.gradients[box.device][-1]
        assert len(versions) == box.version
        versions.append([one - SGD_RATE * by for one, by in zip(versions[-1], gradient, strict=True)])
        self._load(box.device, box.version)

    def _gradients(self, device: int, way: _MicroBatchRecord, gradient: Tensor | None) -> tuple[Weights, Tensor | None]:
        """Of the stage's parameters, and of what came in."""
        wanted = [*self.stages[device].parameters(), *([way.given] if device else [])]
        found = list(torch.autograd.grad(way.made, wanted, gradient, retain_graph=True))
        return found, found.pop() if device else None

    def _load(self, device: int, version: int) -> None:
        """Behind autograd's back: a graph that is under way sees the numbers change, as PipeDream's does unstashed."""
        for parameter, numbers in zip(self.stages[device].parameters(), self._versions[device][version], strict=True):
            parameter.data.copy_(numbers)
