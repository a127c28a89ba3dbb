"""GPipe and 1F1B for real, by torch.distributed.pipelining: a stage in each process, timed, its memory counted."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from core.labs.processes.process_group import join
from core.labs.processes.shard_bytes import held
from core.labs.scale.pipeline_schedule import BACKWARD, FORWARD, UPDATE
from core.labs.scale.ranks.model_stages import ModelStage
from core.labs.scale.ranks.rank_messages import BytesCounted, Message, MilestoneReached, RankJob
from core.labs.scale.ranks.rank_setup import RATE, loaded, texts
from core.labs.scale.ranks.saved_tensors import SavedTensorCounter
from core.labs.scale.ranks.shared_clock import Clock
from core.labs.scale.ranks.single_process import SingleProcessReference, difference, learn
from core.labs.scale.ranks.traffic_counter import TrafficHook, state_bytes

_ENGINES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class TimedStage(PipelineStage):
    """torch's stage, with a look at the clock before and behind whatever it does."""

    def __init__(self, stage: ModelStage, job: RankJob, clock: Clock) -> None:
        """What goes in and out is told beforehand: finding out would run the stage once more."""
        hidden = torch.empty(1, job.length, stage.width, requires_grad=True)
        ids = torch.empty(1, job.length, dtype=torch.long)
        super().__init__(
            stage, job.rank, job.processes, torch.device("cpu"), input_args=hidden if job.rank else ids,
            output_args=hidden,
        )  # fmt: skip
        self._clock = clock

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        self._clock.waits()
        return super().get_fwd_recv_ops(fwd_chunk_id)

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        self._clock.waits()
        return super().get_bwd_recv_ops(bwd_chunk_id)

    def forward_one_chunk(self, fwd_chunk_id: int, *given: Any, **options: Any) -> object:
        with self._clock.box(FORWARD, fwd_chunk_id):
            return super().forward_one_chunk(fwd_chunk_id, *given, **options)

    def backward_one_chunk(self, bwd_chunk_id: int, *given: Any, **options: Any) -> None:
        with self._clock.box(BACKWARD, bwd_chunk_id):
            super().backward_one_chunk(bwd_chunk_id, *given, **options)


class Pipe:
    """One process's place in the pipeline."""

    def __init__(self, stage: ModelStage, job: RankJob) -> None:
        self.stage, self._job = stage, job
        self.clock = Clock(job.rank)
        self.optimizer = torch.optim.AdamW(stage.parameters(), lr=RATE)
        timed = TimedStage(stage, job, self.clock)
        count = job.options.micro_batches
        self._schedule = _ENGINES[job.scheme](timed, count, self._loss, scale_grads=False)

    def go(self, ids: Tensor) -> float:
        """Forward and backward of a batch [micro-batches, length + 1]; its loss, 0 but on the last stage."""
        losses: list[Tensor] = []
        given = (ids[:, :-1].contiguous(),) if self._job.rank == 0 else ()
        right = ids[:, 1:].contiguous() if self.stage.head is not None else None
        self._schedule.step(*given, target=right, losses=losses, return_outputs=False)
        self._add_shared()
        return sum(float(loss.detach()) for loss in losses)

    def update(self) -> None:
        """Once behind the whole batch."""
        with self.clock.box(UPDATE, self._job.options.micro_batches - 1, 1):
            self.optimizer.step()

    def _loss(self, hidden: Tensor, right: Tensor) -> Tensor:
        found = self.stage.loss(hidden, right)
        if self.clock.boxes:
            self.clock.goes_on()
        return found

    def _add_shared(self) -> None:
        """A table that two stages have gets the sum of both gradients."""
        last = self._job.processes - 1
        mine = self.stage.shared
        if not last or mine is None or mine.grad is None or not self._job.is_tied:
            return
        theirs, other = torch.empty_like(mine.grad), last - self._job.rank
        sent = dist.P2POp(dist.isend, mine.grad, other)
        for work in dist.batch_isend_irecv([sent, dist.P2POp(dist.irecv, theirs, other)]):
            work.wait()
        mine.grad += theirs


def run(job: RankJob, tell: Callable[[Message], None]) -> None:
    """Train `job.steps` steps with the others; the first one's gradients are compared, the last one is counted."""
    model = loaded(job)
    ids = texts(model.model, job.options.micro_batches, job.length + 1)
    if job.rank == 0:
        tell(MilestoneReached("alone"))
    alone = learn(deepcopy(model.model), ids, job.steps if job.rank == 0 else 1)
    tell(MilestoneReached("joins"))
    join(job.rank, job.processes, job.port)
    options = job.options
    stage = ModelStage(
        model.model, job.rank, job.processes, micro_batches=options.micro_batches, recompute=options.recompute
    )
    tell(_trained(Pipe(stage, job), ids, alone, job, tell))
    dist.barrier()


def _trained(
    pipe: Pipe, ids: Tensor, alone: SingleProcessReference, job: RankJob, tell: Callable[[Message], None]
) -> BytesCounted:
    losses, differs = [], 0.0
    for step in range(job.steps - 1):
        tell(MilestoneReached("step", step + 1))
        losses.append(pipe.go(ids))
        if not step:
            differs = _differs(pipe.stage, alone)
        pipe.update()
        pipe.optimizer.zero_grad(set_to_none=True)
    tell(MilestoneReached("step", job.steps))
    return _counted(pipe, ids, losses, alone, differs)


def _counted(
    pipe: Pipe, ids: Tensor, losses: list[float], alone: SingleProcessReference, differs: float
) -> BytesCounted:
    """The last step, begun by all at once."""
    dist.barrier()
    pipe.clock.clear()
    parts = {"parameters": held(pipe.stage.parameters())}
    with TrafficHook() as hook, SavedTensorCounter(pipe.stage.parameters()) as kept:
        losses.append(pipe.go(ids))
    parts["activations"] = kept.most
    parts["gradients"] = held(parameter.grad for parameter in pipe.stage.parameters())
    pipe.update()
    parts["optimizer"] = state_bytes(pipe.optimizer.state)
    boxes = pipe.clock.boxes
    seconds = (boxes[-1].stop - boxes[0].start) / 1000
    said = losses if pipe.stage.head is not None else []
    return BytesCounted(
        parts, dict(hook.bytes), said, alone.losses, seconds, difference=differs, boxes=boxes, costs=alone.costs
    )


def _differs(stage: ModelStage, alone: SingleProcessReference) -> float:
    found = [parameter.grad for parameter in stage.parameters() if parameter.grad is not None]
    return difference(found, [alone.gradients[name] for name in stage.names])
