"""Wait for a device, time its work, and read its memory: the differences between CUDA, MPS and the CPU."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import torch


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has finished everything that was launched on it; a no-op on the CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


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
        return max(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device), 0)
    if device.type == "mps":
        return max(int(torch.mps.driver_allocated_memory()) - int(torch.mps.current_allocated_memory()), 0)
    return 0


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
