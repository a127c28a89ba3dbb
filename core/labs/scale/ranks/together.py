"""What the processes of every scheme begin with: a model, texts, and each other."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from transformers import PreTrainedModel

from core.labs.scale.ranks.messages import Job
from core.models.model import LoadedModel, load

RATE = 1e-3
PATIENCE = timedelta(seconds=60)
"""How long a collective waits for a process that does not come."""


def loaded(job: Job) -> LoadedModel:
    """The model, ready to be trained, in float32."""
    torch.set_num_threads(1)
    found = load(job.folder, device="cpu", dtype="float32")
    found.model.requires_grad_(True)
    found.model.config.use_cache = False
    return found


def texts(model: PreTrainedModel, count: int, length: int) -> torch.Tensor:
    """Token ids [count, length]: any will do, the same for all that ask."""
    most = int(model.config.get_text_config().vocab_size)
    return torch.randint(most, (count, length), generator=torch.Generator().manual_seed(0))


def join(job: Job) -> None:
    """Meet the others. Raises RuntimeError where one does not come in time."""
    rank, count = str(job.rank), str(job.processes)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(job.port))
    os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=count)
    dist.init_process_group("gloo", rank=job.rank, world_size=job.processes, timeout=PATIENCE)
