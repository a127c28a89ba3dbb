"""Real tensor parallelism with transformers' own plan: the processes generate a text together, then train together.

Each process holds a part of each matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from decodescope.core.labs.processes.distributed import (
    generate_greedily,
    join_process_group,
    load_tensor_parallel,
    local_bytes,
)
from decodescope.core.labs.scale.ranks.expected_load import GENERATED_TOKENS, PROMPT_TOKENS
from decodescope.core.labs.scale.ranks.instrumentation import TrafficHook, now_ms, state_bytes
from decodescope.core.labs.scale.ranks.rank_messages import ByteCounts, Message, MilestoneReached, RankJob, SampledTexts
from decodescope.core.labs.scale.ranks.reference_training import (
    LEARNING_RATE,
    SingleProcessReference,
    load_for_training,
    random_texts,
    relative_difference,
    text_loss,
    train_reference,
)

PROMPT_TEXT = "Once upon a time, there was a little fox."


def train_tensor_parallel(job: RankJob, send_message: Callable[[Message], None]) -> None:
    """Generate, then train `job.steps` steps with the others; compare the gradients of the first and count the last
    step.
    """
    model = load_for_training(job)
    ids = random_texts(model.model, 1, job.length + 1)
    tokenizer: Any = model.tokenizer
    prompt = torch.tensor([(tokenizer(PROMPT_TEXT).input_ids * PROMPT_TOKENS)[:PROMPT_TOKENS]])
    alone_wrote: list[int] = []
    if job.rank == 0:
        send_message(MilestoneReached("alone"))
        alone_wrote = generate_greedily(model.model, prompt, GENERATED_TOKENS)
    alone = train_reference(model.model, ids, job.steps if job.rank == 0 else 1)
    send_message(MilestoneReached("joins"))
    join_process_group(job.rank, job.processes, job.port)
    network = load_tensor_parallel(Path(job.folder), torch.float32).train()
    with TrafficHook() as hook:
        wrote = generate_greedily(network, prompt, GENERATED_TOKENS)
    text = tokenizer.decode([*prompt[0].tolist(), *wrote], skip_special_tokens=True)
    counted = _train(network, ids[0], alone, job, send_message)
    counted.sampled_texts = SampledTexts(wrote, alone_wrote, text, _sent_bytes(hook, job))
    send_message(counted)
    dist.barrier()


def _train(
    network: PreTrainedModel,
    ids: Tensor,
    reference: SingleProcessReference,
    job: RankJob,
    send_message: Callable[[Message], None],
) -> ByteCounts:
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE)
    losses, differs = [], 0.0
    hook, began = TrafficHook(), 0.0
    for step in range(job.steps):
        send_message(MilestoneReached("step", step + 1))
        hook, began = TrafficHook(), now_ms()
        optimizer.zero_grad(set_to_none=True)
        with hook:
            loss = text_loss(network, ids)
            loss.backward()
        if not step:
            differs = _max_difference(network, reference)
        optimizer.step()
        losses.append(float(loss.detach()))
    parts = {
        "parameters": local_bytes(network.parameters()),
        "gradients": local_bytes(part.grad for part in network.parameters()),
        "optimizer": state_bytes(optimizer.state),
    }
    sent = {"all": _sent_bytes(hook, job)}
    return ByteCounts(parts, sent, losses, reference.losses, (now_ms() - began) / 1000, difference=differs)


def _max_difference(network: PreTrainedModel, reference: SingleProcessReference) -> float:
    """Return the largest difference of the gathered gradients. All ranks must call this."""
    found = {name: _full_tensor(part.grad) for name, part in network.named_parameters() if part.grad is not None}
    return relative_difference(list(found.values()), [reference.gradients[name] for name in found])


def _full_tensor(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _sent_bytes(hook: TrafficHook, job: RankJob) -> int:
    """Return the bytes sent by this process; a single one sends none."""
    return sum(hook.bytes.values()) if job.processes > 1 else 0
