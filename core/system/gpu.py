"""Wait for a device, time its work, and read its memory: the differences between CUDA, MPS and the CPU."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has finished everything that was launched on it; a no-op on the CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


class DeviceMemory(NamedTuple):
    """Bytes of a GPU's memory."""

    used: int
    """In tensors."""
    reserved: int
    """Further bytes that torch's allocator has taken from the driver: reusable ones, and those of CUDA graphs."""
    free: int
    """Free for the driver, and so for other programs."""


def device_memory(device: torch.device) -> DeviceMemory | None:
    """Return how a GPU's memory is used; None for the CPU."""
    if device.type == "cuda":
        used = torch.cuda.memory_allocated(device)
        return DeviceMemory(used, torch.cuda.memory_reserved(device) - used, torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        used, taken = int(torch.mps.current_allocated_memory()), int(torch.mps.driver_allocated_memory())
        return DeviceMemory(used, max(taken - used, 0), max(int(torch.mps.recommended_max_memory()) - taken, 0))
    return None


def free_device_bytes(device: torch.device) -> int | None:
    """Return the bytes that a GPU can still give to tensors; None for the CPU.

    These are the bytes that are free for the driver, and those that torch's allocator has reserved and does not use.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + reusable_bytes(device)
    if device.type == "mps":
        return max(int(torch.mps.recommended_max_memory()) - int(torch.mps.current_allocated_memory()), 0)
    return None


def reusable_bytes(device: torch.device) -> int:
    """Return the bytes that torch's allocator has reserved on a GPU but that no tensor uses."""
    if device.type == "cuda":
        owned = sum(pool.bytes for pool in _GRAPH_POOLS if pool.device == device)
        return max(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device) - owned, 0)
    if device.type == "mps":
        return max(int(torch.mps.driver_allocated_memory()) - int(torch.mps.current_allocated_memory()), 0)
    return 0


class GraphPool:
    """Memory that captured CUDA graphs own for their intermediate results: reserved, but of no use to other tensors."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.bytes = 0
        self._handle = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)
        _GRAPH_POOLS.add(self)

    @contextlib.contextmanager
    def capturing(self, graph: torch.cuda.CUDAGraph) -> Iterator[None]:
        """Record what is launched within the context into a graph. Other threads may go on using the GPU."""
        with torch.cuda.graph(graph, pool=self._handle, stream=self._stream, capture_error_mode="thread_local"):
            before = torch.cuda.memory_reserved(self.device)
            yield
            self.bytes += max(torch.cuda.memory_reserved(self.device) - before, 0)


_GRAPH_POOLS: weakref.WeakSet[GraphPool] = weakref.WeakSet()


def upload(values: object, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return a tensor of host values on a device. CUDA copies it without waiting for the work launched before.

    The driver has read pageable memory when the call returns, so the values need not be kept. On MPS the copy waits.
    """
    made = torch.tensor(values, dtype=dtype)
    return made if device.type == "cpu" else made.to(device, non_blocking=device.type == "cuda")


def upload_array(values: npt.NDArray[np.generic], device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Return the same for an array, converted to `dtype`; on the CPU it shares the array's memory if it can."""
    return torch.from_numpy(values).to(device=device, dtype=dtype, non_blocking=device.type == "cuda")


class DeviceTimer:
    """Times work on a device without waiting for it. On CUDA, `seconds` may be read once the work has finished."""

    def __init__(self, device: torch.device) -> None:
        self._begun = time.perf_counter()
        self._seconds = 0.0
        self._events: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        if device.type == "cuda":
            self._stream = torch.cuda.current_stream(device)
            self._events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self._events[0].record(self._stream)

    def stop(self) -> None:
        """Mark the end of the timed work."""
        self._seconds = time.perf_counter() - self._begun
        if self._events is not None:
            self._events[1].record(self._stream)

    @property
    def seconds(self) -> float:
        """Seconds that the work took; 0 before `stop`."""
        if self._events is None or not self._seconds:
            return self._seconds
        milliseconds: float = self._events[0].elapsed_time(self._events[1])
        return milliseconds / 1000
