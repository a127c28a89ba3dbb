"""Tensor parallel for real, by transformers' own plan: every process keeps a part of each matrix; all write a text
together, and train together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from core.labs.processes.process_group import join
from core.labs.processes.shard_bytes import held
from core.labs.processes.tensor_parallel import shared, written
from core.labs.scale.ranks.rank_messages import BytesCounted, Message, MilestoneReached, RankJob, SampledTexts
from core.labs.scale.ranks.rank_setup import RATE, loaded, texts
from core.labs.scale.ranks.shared_clock import now
from core.labs.scale.ranks.single_process import SingleProcessReference, difference, learn, loss_of
from core.labs.scale.ranks.tensor_parallel_load import PROMPT, WRITTEN
from core.labs.scale.ranks.traffic_counter import TrafficHook, state_bytes

BEGINNING = "Once upon a time, there was a little fox."


def run(job: RankJob, tell: Callable[[Message], None]) -> None:
    """Write, then train `job.steps` steps with the others; the first one's gradients are compared, the last is
    counted."""
    model = loaded(job)
    ids = texts(model.model, 1, job.length + 1)
    tokenizer: Any = model.tokenizer
    prompt = torch.tensor([(tokenizer(BEGINNING).input_ids * PROMPT)[:PROMPT]])
    alone_wrote: list[int] = []
    if job.rank == 0:
        tell(MilestoneReached("alone"))
        alone_wrote = written(model.model, prompt, WRITTEN)
    alone = learn(model.model, ids, job.steps if job.rank == 0 else 1)
    tell(MilestoneReached("joins"))
    join(job.rank, job.processes, job.port)
    network = shared(Path(job.folder), torch.float32).train()
    with TrafficHook() as hook:
        wrote = written(network, prompt, WRITTEN)
    text = tokenizer.decode([*prompt[0].tolist(), *wrote], skip_special_tokens=True)
    counted = _trained(network, ids[0], alone, job, tell)
    counted.written = SampledTexts(wrote, alone_wrote, text, _sent(hook, job))
    tell(counted)
    dist.barrier()


def _trained(
    network: PreTrainedModel, ids: Tensor, alone: SingleProcessReference, job: RankJob, tell: Callable[[Message], None]
) -> BytesCounted:
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE)
    losses, differs = [], 0.0
    hook, began = TrafficHook(), 0.0
    for step in range(job.steps):
        tell(MilestoneReached("step", step + 1))
        hook, began = TrafficHook(), now()
        optimizer.zero_grad(set_to_none=True)
        with hook:
            loss = loss_of(network, ids)
            loss.backward()
        if not step:
            differs = _differs(network, alone)
        optimizer.step()
        losses.append(float(loss.detach()))
    parts = {
        "parameters": held(network.parameters()), "gradients": held(part.grad for part in network.parameters()),
        "optimizer": state_bytes(optimizer.state),
    }  # fmt: skip
    sent = {"all": _sent(hook, job)}
    return BytesCounted(parts, sent, losses, alone.losses, (now() - began) / 1000, difference=differs)


def _differs(network: PreTrainedModel, alone: SingleProcessReference) -> float:
    """All ranks gather, so all have to ask."""
    found = {name: _whole(part.grad) for name, part in network.named_parameters() if part.grad is not None}
    return difference(list(found.values()), [alone.gradients[name] for name in found])


def _whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _sent(hook: TrafficHook, job: RankJob) -> int:
    """What left this process: one alone sums with nobody."""
    return sum(hook.bytes.values()) if job.processes > 1 else 0
