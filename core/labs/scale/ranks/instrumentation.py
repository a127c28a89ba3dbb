"""Measure a rank: bytes of saved tensors, traffic of collectives, and the time of its work."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from decodescope.core.labs.processes.distributed import local_bytes
from decodescope.core.labs.scale.pipeline_schedule import WAIT, Box
from decodescope.core.labs.scale.ring_collectives import sent_by_ring


class SavedTensorCounter:
    """Counts saved bytes while active: currently and at peak, each storage once, without parameters."""

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.set_parameters(parameters)
        self._reference_counts: Counter[int] = Counter()
        self._hooks = saved_tensors_hooks(self._pack, _unpack)
        self.current_bytes = self.peak_bytes = 0

    def __enter__(self) -> SavedTensorCounter:
        self._hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.__exit__(*error)

    def set_parameters(self, parameters: Iterable[Tensor]) -> None:
        """Set the tensors that are excluded as parameters from now on."""
        self._parameter_addresses = {_storage_address(parameter) for parameter in parameters}

    def release(self, address: int, size: int) -> None:
        """Count one reference to this storage less."""
        self._reference_counts[address] -= 1
        if not self._reference_counts[address]:
            self.current_bytes -= size

    def _pack(self, tensor: Tensor) -> Tensor | _TrackedTensor:
        place, size = _storage_address(tensor), tensor.untyped_storage().nbytes()
        if place in self._parameter_addresses or not size:
            return tensor
        self._reference_counts[place] += 1
        if self._reference_counts[place] == 1:
            self.current_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.current_bytes)
        return _TrackedTensor(tensor, self, place, size)


class _TrackedTensor:
    """A saved tensor that reports its release by the graph."""

    def __init__(self, tensor: Tensor, counter: SavedTensorCounter, address: int, size: int) -> None:
        self.tensor, self._ledger, self._place, self._size = tensor, counter, address, size

    def __del__(self) -> None:
        self._ledger.release(self._place, self._size)


def _unpack(packed: Tensor | _TrackedTensor) -> Tensor:
    return packed if isinstance(packed, torch.Tensor) else packed.tensor


def _storage_address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


_COLLECTIVES = {
    "c10d::allreduce_": (0, "all_reduce"),
    "c10d::_allgather_base_": (0, "all_gather"),
    "c10d::_reduce_scatter_base_": (1, "reduce_scatter"),
    "c10d::broadcast_": (0, "broadcast"),
    "c10d::send": (0, "send"),
    "_c10d_functional::all_reduce": (0, "all_reduce"),
    "_c10d_functional::all_gather_into_tensor": (0, "all_gather"),
}
"""For each operation: the argument with the full tensor, and what it does."""
_GROUP_SIZE_ARGUMENT = {"_c10d_functional::all_gather_into_tensor": 1}
"""Operations whose argument is the local part: index of the argument with the group size."""
_ROOT_ARGUMENT = 2
"""Index of the argument of a broadcast with the process that has the tensor."""


class TrafficHook(TorchDispatchMode):
    """Counts the bytes that this process sends for every collective called while active, by operation.

    The transfers of a ring are added up step by step (`ring_collectives`), as gloo and NCCL carry them out; no formula
    of the prediction is used. (gloo's own reduce-scatter is an all-reduce, which sends twice as much.)
    """

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.bytes: Counter[str] = Counter()
        self._rank, self._count = 0, 1
        if torch.distributed.is_initialized():
            self._rank, self._count = torch.distributed.get_rank(), torch.distributed.get_world_size()

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, object] | None = None
    ) -> object:
        name = func._schema.name
        if name in _COLLECTIVES and self._count > 1:  # a single process calls collectives too, but sends nothing
            self.bytes[name.partition("::")[2].strip("_")] += self._sent_bytes(name, args)
        return func(*args, **(kwargs or {}))

    def _sent_bytes(self, name: str, args: tuple[Any, ...]) -> int:
        place, kind = _COLLECTIVES[name]
        shares = args[_GROUP_SIZE_ARGUMENT[name]] if name in _GROUP_SIZE_ARGUMENT else 1
        root = args[_ROOT_ARGUMENT] if kind == "broadcast" else 0
        sent = 0
        for leaf in tree_leaves(args[place]):
            if isinstance(leaf, torch.Tensor):
                size = leaf.element_size()
                elements = shares * local_bytes([leaf]) // size
                sent += size * sent_by_ring(kind, elements, self._rank, self._count, root)
        return sent


def state_bytes(state: Mapping[Any, Mapping[str, Any]]) -> int:
    """Return the bytes of an optimizer's state."""
    return local_bytes(value for each in state.values() for value in each.values() if isinstance(value, torch.Tensor))


def now_ms() -> float:
    """Return milliseconds from a fixed moment that is the same for all processes."""
    return time.perf_counter() * 1000


class BoxRecorder:
    """Records the boxes of one device."""

    def __init__(self, device: int) -> None:
        self._device = device
        self._waiting_since = 0.0
        self.boxes: list[Box] = []

    def clear(self) -> None:
        """Remove all boxes."""
        self.boxes.clear()
        self._waiting_since = 0.0

    def start_waiting(self) -> None:
        """Mark the start of a wait that lasts until the next box."""
        self._waiting_since = now_ms()

    @contextmanager
    def box(self, kind: str, micro_batch: int, version: int = 0) -> Iterator[None]:
        """Record the work inside as one box, and the wait before it, if any, as another."""
        began = now_ms()
        if self._waiting_since:
            self.boxes.append(Box(self._device, self._waiting_since, began, WAIT, micro_batch, version))
            self._waiting_since = 0.0
        yield
        self.boxes.append(Box(self._device, began, now_ms(), kind, micro_batch, version))

    def extend_last(self) -> None:
        """Extend the last box until now."""
        self.boxes[-1] = replace(self.boxes[-1], stop=now_ms())
