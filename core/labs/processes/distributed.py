"""Join a process group, load a tensor parallel model, and count the bytes of local shards."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

COLLECTIVE_TIMEOUT = timedelta(seconds=60)
"""Timeout of a collective operation."""


def join_process_group(rank: int, processes: int, port: int, backend: str = "gloo") -> None:
    """Join the other processes at that port of this machine. Raises RuntimeError if one does not join in time."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(processes))
    dist.init_process_group(backend, rank=rank, world_size=processes, timeout=COLLECTIVE_TIMEOUT)


def local_bytes(tensors: Iterable[torch.Tensor | None]) -> int:
    """Return the bytes of these tensors on this device; of a sharded tensor, those of its local shard."""
    return sum(here.numel() * here.element_size() for here in map(local_shard, tensors) if here is not None)


def local_shard(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """Return the part of the tensor on this device."""
    from torch.distributed.tensor import DTensor

    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def load_tensor_parallel(folder: Path, dtype: torch.dtype) -> PreTrainedModel:
    """Load this process's part of the model."""
    network: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        folder, tp_plan="auto", dtype=dtype, local_files_only=True
    )
    return network


def generate_greedily(network: Any, prompt: Tensor, tokens: int) -> list[int]:
    """Return the greedy continuation of ids [1, length] with exactly `tokens` tokens, from a sharded or full model."""
    with torch.inference_mode():
        found = network.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, use_cache=True,
            max_new_tokens=tokens, min_new_tokens=tokens,
        )  # fmt: skip
    ids: list[int] = found[0, prompt.shape[1] :].tolist()
    return ids
