"""Train a few steps with a data parallel scheme on torch.distributed with gloo, and count the bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from decodescope.core.labs.processes.distributed import join_process_group, local_bytes
from decodescope.core.labs.scale.ranks.instrumentation import TrafficHook, state_bytes
from decodescope.core.labs.scale.ranks.rank_messages import ByteCounts, Message, MilestoneReached, RankJob
from decodescope.core.labs.scale.ranks.reference_training import LEARNING_RATE, load_for_training, random_texts


class TrainingSetup(NamedTuple):
    """A model ready for training; `forward_module` is called with each batch."""

    model: torch.nn.Module
    forward_module: torch.nn.Module
    optimizer: torch.optim.Optimizer

    @property
    def optimizer_bytes(self) -> int:
        """Bytes of the optimizer's state on this device."""
        mine = self.optimizer
        return state_bytes(mine.optim.state if isinstance(mine, ZeroRedundancyOptimizer) else mine.state)


def train_data_parallel(job: RankJob, send_message: Callable[[Message], None]) -> None:
    """Train `job.steps` steps with the others and count the last one."""
    model = load_for_training(job).model
    batch = random_texts(model, job.processes, job.length)
    alone: list[float] = []
    if job.rank == 0:
        send_message(MilestoneReached("alone"))
        alone = _single_process_losses(deepcopy(model), batch, job)
    send_message(MilestoneReached("joins"))
    join_process_group(job.rank, job.processes, job.port)
    trainee = _SCHEMES[job.scheme](model)
    hook, seconds = TrafficHook(), 0.0
    losses: list[float] = []
    parts: dict[str, int] = {}
    for step in range(job.steps):
        send_message(MilestoneReached("step", step + 1))
        began = time.perf_counter()
        if step < job.steps - 1:
            loss, _ = _train_step(trainee, batch[job.rank : job.rank + 1])
        else:
            with hook:
                loss, parts = _train_step(trainee, batch[job.rank : job.rank + 1])
        seconds = time.perf_counter() - began
        losses.append(_mean_over_ranks(loss, job.processes))
    send_message(ByteCounts(parts, dict(hook.bytes), losses, alone, seconds))
    dist.barrier()


def _train_step(trainee: TrainingSetup, ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, int]]:
    """Run one step; return its loss and the bytes held, each part at the time it exists.

    Parameters are counted between forward and backward, gradients after backward, then the optimizer's state; if full
    parameters exist, the local part of them counts as buffers.
    """
    loss = trainee.forward_module(input_ids=ids, labels=ids).loss
    parts = {"parameters": local_bytes(trainee.model.parameters())}
    loss.backward()
    parts["gradients"] = local_bytes(parameter.grad for parameter in trainee.model.parameters())
    trainee.optimizer.step()
    parts["optimizer"] = trainee.optimizer_bytes
    trainee.optimizer.zero_grad(set_to_none=True)
    share = local_bytes(trainee.model.parameters())
    parts["buffers"] = share if share < parts["parameters"] else 0
    return loss.detach(), parts


def _single_process_losses(model: torch.nn.Module, batch: torch.Tensor, job: RankJob) -> list[float]:
    """Return the losses of one process that reads all texts at once."""
    trainee = TrainingSetup(model, model, torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE))
    return [float(_train_step(trainee, batch)[0]) for _ in range(job.steps)]


def _mean_over_ranks(loss: torch.Tensor, processes: int) -> float:
    """Return the mean loss over all ranks."""
    total = loss.clone()
    dist.all_reduce(total)
    return float(total) / processes


def _ddp(model: torch.nn.Module) -> TrainingSetup:
    called = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    return TrainingSetup(model, called, torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE))


def _zero1(model: torch.nn.Module) -> TrainingSetup:
    called = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    return TrainingSetup(
        model, called, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=LEARNING_RATE)
    )


def _fully_sharded(model: torch.nn.Module, reshard: bool) -> TrainingSetup:
    """Shard the model layer by layer; with `reshard`, gathered parameters are freed after the forward pass and gathered
    again.
    """
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in _decoder_layers(model):
        fully_shard(layer, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh, reshard_after_forward=reshard)
    return TrainingSetup(model, model, torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE))


def _decoder_layers(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the longest module list: a decoder's layers."""
    lists = [list(part) for part in model.modules() if isinstance(part, torch.nn.ModuleList)]
    return max(lists, key=len, default=[])


_SCHEMES: dict[str, Callable[[torch.nn.Module], TrainingSetup]] = {
    "ddp": _ddp,
    "zero1": _zero1,
    "zero2": lambda model: _fully_sharded(model, reshard=False),
    "zero3": lambda model: _fully_sharded(model, reshard=True),
}
