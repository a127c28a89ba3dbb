"""Bytes that really go through the collectives, and those of an optimizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from core.labs.processes.shard_bytes import local_bytes

_COLLECTIVES = {
    "c10d::allreduce_": (0, 2),
    "c10d::_allgather_base_": (0, 1),
    "c10d::_reduce_scatter_base_": (1, 1),
    "c10d::broadcast_": (0, 1),
    "c10d::send": (0, 1),
    "_c10d_functional::all_reduce": (0, 2),
    "_c10d_functional::all_gather_into_tensor": (0, 1),
}
"""Which argument holds the whole tensor, and how often it goes around a ring: an all-reduce is a reduce-scatter and an
all-gather, as ZeRO's paper counts them."""
_GROUP_SIZE_ARGUMENT = {"_c10d_functional::all_gather_into_tensor": 1}
"""Where the argument is one's own share: which other says among how many."""


class TrafficHook(TorchDispatchMode):
    """Sees every collective that is called while it is on; `bytes` by operation."""

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.bytes: Counter[str] = Counter()
        self._is_alone = torch.distributed.is_initialized() and torch.distributed.get_world_size() == 1
        """One process calls them too, and sends nothing."""

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, object] | None = None
    ) -> object:
        name = func._schema.name
        if name in _COLLECTIVES and not self._is_alone:
            place, times = _COLLECTIVES[name]
            whole = (leaf for leaf in tree_leaves(args[place]) if isinstance(leaf, torch.Tensor))
            shares = args[_GROUP_SIZE_ARGUMENT[name]] if name in _GROUP_SIZE_ARGUMENT else 1
            self.bytes[name.partition("::")[2].strip("_")] += times * shares * local_bytes(whole)
        return func(*args, **(kwargs or {}))


def state_bytes(state: Mapping[Any, Mapping[str, Any]]) -> int:
    """Bytes of an optimizer's state."""
    return local_bytes(value for each in state.values() for value in each.values() if isinstance(value, torch.Tensor))
