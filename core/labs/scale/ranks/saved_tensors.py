"""What autograd keeps between forward and backward, counted while it is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks


class SavedTensorCounter:
    """Bytes that are kept `current_bytes`, and `peak_bytes` at once, each storage once; parameters are not counted. While it is on."""

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
        """Which ones are parameters from here on."""
        self._parameter_addresses = {_storage_address(parameter) for parameter in parameters}

    def release(self, address: int, size: int) -> None:
        """One that held this storage is gone."""
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
    """A tensor in the graph, which tells when the graph lets go of it."""

    def __init__(self, tensor: Tensor, counter: SavedTensorCounter, address: int, size: int) -> None:
        self.tensor, self._ledger, self._place, self._size = tensor, counter, address, size

    def __del__(self) -> None:
        self._ledger.release(self._place, self._size)


def _unpack(packed: Tensor | _TrackedTensor) -> Tensor:
    return packed if isinstance(packed, torch.Tensor) else packed.tensor


def _storage_address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
