"""Real GPipe and 1F1B with torch.distributed.pipelining: a stage in each process, with time and memory measured."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from decodescope.core.labs.processes.distributed import join_process_group, local_bytes
from decodescope.core.labs.scale.pipeline_schedule import BACKWARD, FORWARD, UPDATE
from decodescope.core.labs.scale.ranks.instrumentation import BoxRecorder, SavedTensorCounter, TrafficHook, state_bytes
from decodescope.core.labs.scale.ranks.model_stages import ModelStage
from decodescope.core.labs.scale.ranks.rank_messages import ByteCounts, Message, MilestoneReached, RankJob
from decodescope.core.labs.scale.ranks.reference_training import (
    LEARNING_RATE,
    SingleProcessReference,
    load_for_training,
    random_texts,
    relative_difference,
    train_reference,
)

_SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class TimedStage(PipelineStage):
    """A PipelineStage of torch that records the time of its work."""

    def __init__(self, stage: ModelStage, job: RankJob, clock: BoxRecorder) -> None:
        """Describe inputs and outputs beforehand, because inferring them would run the stage once more."""
        hidden = torch.empty(1, job.length, stage.width, requires_grad=True)
        ids = torch.empty(1, job.length, dtype=torch.long)
        super().__init__(
            stage, job.rank, job.processes, torch.device("cpu"), input_args=hidden if job.rank else ids,
            output_args=hidden,
        )  # fmt: skip
        self._clock = clock

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        self._clock.start_waiting()
        return super().get_fwd_recv_ops(fwd_chunk_id)

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        self._clock.start_waiting()
        return super().get_bwd_recv_ops(bwd_chunk_id)

    def forward_one_chunk(self, fwd_chunk_id: int, *given: Any, **options: Any) -> object:
        with self._clock.box(FORWARD, fwd_chunk_id):
            return super().forward_one_chunk(fwd_chunk_id, *given, **options)

    def backward_one_chunk(self, bwd_chunk_id: int, *given: Any, **options: Any) -> None:
        with self._clock.box(BACKWARD, bwd_chunk_id):
            super().backward_one_chunk(bwd_chunk_id, *given, **options)


class PipelineRank:
    """One process of the pipeline."""

    def __init__(self, stage: ModelStage, job: RankJob) -> None:
        self.stage, self._job = stage, job
        self.clock = BoxRecorder(job.rank)
        self.optimizer = torch.optim.AdamW(stage.parameters(), lr=LEARNING_RATE)
        timed = TimedStage(stage, job, self.clock)
        count = job.options.micro_batches
        self._schedule = _SCHEDULES[job.scheme](timed, count, self._loss, scale_grads=False)

    def run_batch(self, ids: Tensor) -> float:
        """Run forward and backward of a batch [micro-batches, length + 1]; return its loss, 0 except on the last
        stage.
        """
        losses: list[Tensor] = []
        given = (ids[:, :-1].contiguous(),) if self._job.rank == 0 else ()
        right = ids[:, 1:].contiguous() if self.stage.head is not None else None
        self._schedule.step(*given, target=right, losses=losses, return_outputs=False)
        self._sum_tied_gradients()
        return sum(float(loss.detach()) for loss in losses)

    def update(self) -> None:
        """Update once after the whole batch."""
        with self.clock.box(UPDATE, self._job.options.micro_batches - 1, 1):
            self.optimizer.step()

    def _loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        found = self.stage.loss(hidden, targets)
        if self.clock.boxes:
            self.clock.extend_last()
        return found

    def _sum_tied_gradients(self) -> None:
        """Sum the gradients of a tied embedding over the two stages that have it."""
        last = self._job.processes - 1
        mine = self.stage.tied_weight
        if not last or mine is None or mine.grad is None or not self._job.is_tied:
            return
        theirs, other = torch.empty_like(mine.grad), last - self._job.rank
        sent = dist.P2POp(dist.isend, mine.grad, other)
        for work in dist.batch_isend_irecv([sent, dist.P2POp(dist.irecv, theirs, other)]):
            work.wait()
        mine.grad += theirs


def train_pipeline(job: RankJob, send_message: Callable[[Message], None]) -> None:
    """Train `job.steps` steps with the others; compare the gradients of the first and count the bytes of the last."""
    model = load_for_training(job)
    ids = random_texts(model.model, job.options.micro_batches, job.length + 1)
    if job.rank == 0:
        send_message(MilestoneReached("alone"))
    alone = train_reference(deepcopy(model.model), ids, job.steps if job.rank == 0 else 1)
    send_message(MilestoneReached("joins"))
    join_process_group(job.rank, job.processes, job.port)
    options = job.options
    stage = ModelStage(
        model.model, job.rank, job.processes, micro_batches=options.micro_batches, recompute=options.recompute
    )
    send_message(_train(PipelineRank(stage, job), ids, alone, job, send_message))
    dist.barrier()


def _train(
    pipe: PipelineRank,
    ids: Tensor,
    reference: SingleProcessReference,
    job: RankJob,
    send_message: Callable[[Message], None],
) -> ByteCounts:
    losses, differs = [], 0.0
    for step in range(job.steps - 1):
        send_message(MilestoneReached("step", step + 1))
        losses.append(pipe.run_batch(ids))
        if not step:
            differs = _max_difference(pipe.stage, reference)
        pipe.update()
        pipe.optimizer.zero_grad(set_to_none=True)
    send_message(MilestoneReached("step", job.steps))
    return _count_bytes(pipe, ids, losses, reference, differs)


def _count_bytes(
    pipe: PipelineRank, ids: Tensor, losses: list[float], reference: SingleProcessReference, max_difference: float
) -> ByteCounts:
    """Run and count the last step, which all ranks start together."""
    dist.barrier()
    pipe.clock.clear()
    parts = {"parameters": local_bytes(pipe.stage.parameters())}
    with TrafficHook() as hook, SavedTensorCounter(pipe.stage.parameters()) as saved_tensors:
        losses.append(pipe.run_batch(ids))
    parts["activations"] = saved_tensors.peak_bytes
    parts["gradients"] = local_bytes(parameter.grad for parameter in pipe.stage.parameters())
    pipe.update()
    parts["optimizer"] = state_bytes(pipe.optimizer.state)
    boxes = pipe.clock.boxes
    seconds = (boxes[-1].stop - boxes[0].start) / 1000
    reported_losses = losses if pipe.stage.head is not None else []
    return ByteCounts(
        parts,
        dict(hook.bytes),
        reported_losses,
        reference.losses,
        seconds,
        difference=max_difference,
        boxes=boxes,
        costs=reference.costs,
    )


def _max_difference(stage: ModelStage, reference: SingleProcessReference) -> float:
    found = [parameter.grad for parameter in stage.parameters() if parameter.grad is not None]
    return relative_difference(found, [reference.gradients[name] for name in stage.names])
