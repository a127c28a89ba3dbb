"""A few steps of training by one scheme, on torch.distributed with gloo, counted."""

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

from core.labs.processes.process_group import join
from core.labs.processes.shard_bytes import held
from core.labs.scale.ranks.rank_messages import BytesCounted, Message, MilestoneReached, RankJob
from core.labs.scale.ranks.rank_setup import RATE, loaded, texts
from core.labs.scale.ranks.traffic_counter import TrafficHook, state_bytes


class Trainee(NamedTuple):
    """A model ready for training; `called` is what a batch is given to."""

    model: torch.nn.Module
    called: torch.nn.Module
    optimizer: torch.optim.Optimizer

    @property
    def states(self) -> int:
        """Bytes of the optimizer's state on this device."""
        mine = self.optimizer
        return state_bytes(mine.optim.state if isinstance(mine, ZeroRedundancyOptimizer) else mine.state)


def train(job: RankJob, tell: Callable[[Message], None]) -> None:
    """Train `job.steps` steps with the others; the last one is counted."""
    model = loaded(job).model
    batch = texts(model, job.processes, job.length)
    alone: list[float] = []
    if job.rank == 0:
        tell(MilestoneReached("alone"))
        alone = _alone(deepcopy(model), batch, job)
    tell(MilestoneReached("joins"))
    join(job.rank, job.processes, job.port)
    trainee = _SCHEMES[job.scheme](model)
    hook, seconds = TrafficHook(), 0.0
    losses: list[float] = []
    parts: dict[str, int] = {}
    for step in range(job.steps):
        tell(MilestoneReached("step", step + 1))
        began = time.perf_counter()
        if step < job.steps - 1:
            loss, _ = _step(trainee, batch[job.rank : job.rank + 1])
        else:
            with hook:
                loss, parts = _step(trainee, batch[job.rank : job.rank + 1])
        seconds = time.perf_counter() - began
        losses.append(_mean(loss, job.processes))
    tell(BytesCounted(parts, dict(hook.bytes), losses, alone, seconds))
    dist.barrier()


def _step(trainee: Trainee, ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, int]]:
    """One step: its loss, and the bytes held, each part when it is there: parameters between forward and backward,
    gradients behind it, then what the optimizer keeps; beside whole parameters, one's own share of them."""
    loss = trainee.called(input_ids=ids, labels=ids).loss
    parts = {"parameters": held(trainee.model.parameters())}
    loss.backward()
    parts["gradients"] = held(parameter.grad for parameter in trainee.model.parameters())
    trainee.optimizer.step()
    parts["optimizer"] = trainee.states
    trainee.optimizer.zero_grad(set_to_none=True)
    share = held(trainee.model.parameters())
    parts["buffers"] = share if share < parts["parameters"] else 0
    return loss.detach(), parts


def _alone(model: torch.nn.Module, batch: torch.Tensor, job: RankJob) -> list[float]:
    """The losses of one process that reads all texts at once."""
    trainee = Trainee(model, model, torch.optim.AdamW(model.parameters(), lr=RATE))
    return [float(_step(trainee, batch)[0]) for _ in range(job.steps)]


def _mean(loss: torch.Tensor, processes: int) -> float:
    """The loss of all texts."""
    total = loss.clone()
    dist.all_reduce(total)
    return float(total) / processes


def _ddp(model: torch.nn.Module) -> Trainee:
    called = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    return Trainee(model, called, torch.optim.AdamW(model.parameters(), lr=RATE))


def _zero1(model: torch.nn.Module) -> Trainee:
    called = DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
    return Trainee(model, called, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=RATE))


def _fully_sharded(model: torch.nn.Module, let_go: bool) -> Trainee:
    """Layer by layer; `let_go`: gathered parameters are given up behind the forward pass, and gathered once more."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in _layers(model):
        fully_shard(layer, mesh=mesh, reshard_after_forward=let_go)
    fully_shard(model, mesh=mesh, reshard_after_forward=let_go)
    return Trainee(model, model, torch.optim.AdamW(model.parameters(), lr=RATE))


def _layers(model: torch.nn.Module) -> list[torch.nn.Module]:
    """The longest list of modules in it: a decoder's layers."""
    lists = [list(part) for part in model.modules() if isinstance(part, torch.nn.ModuleList)]
    return max(lists, key=len, default=[])


_SCHEMES: dict[str, Callable[[torch.nn.Module], Trainee]] = {
    "ddp": _ddp,
    "zero1": _zero1,
    "zero2": lambda model: _fully_sharded(model, let_go=False),
    "zero3": lambda model: _fully_sharded(model, let_go=True),
}
