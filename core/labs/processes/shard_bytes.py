"""Bytes that are really there."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def local_bytes(tensors: Iterable[torch.Tensor | None]) -> int:
    """Bytes of these tensors on this device: of a divided one, its share."""
    return sum(here.numel() * here.element_size() for here in map(local_shard, tensors) if here is not None)


def local_shard(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """What this device has of it."""
    from torch.distributed.tensor import DTensor

    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
