"""What autograd keeps between forward and backward, counted while it is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks


class SavedTensorCounter:
    """Bytes that are kept `now`, and `most` at once, each storage once; parameters are not counted. While it is on."""

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.know(parameters)
        self._holders: Counter[int] = Counter()
        self._hooks = saved_tensors_hooks(self._pack, _unpack)
        self.now = self.most = 0

    def __enter__(self) -> SavedTensorCounter:
        self._hooks.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hooks.__exit__(*error)

    def know(self, parameters: Iterable[Tensor]) -> None:
        """Which ones are parameters from here on."""
        self._own = {_place(parameter) for parameter in parameters}

    def let_go(self, place: int, size: int) -> None:
        """One that held this storage is gone."""
        self._holders[place] -= 1
        if not self._holders[place]:
            self.now -= size

    def _pack(self, tensor: Tensor) -> Tensor | _GraphTensor:
        place, size = _place(tensor), tensor.untyped_storage().nbytes()
        if place in self._own or not size:
            return tensor
        self._holders[place] += 1
        if self._holders[place] == 1:
            self.now += size
            self.most = max(self.most, self.now)
        return _GraphTensor(tensor, self, place, size)


class _GraphTensor:
    """A tensor in the graph, which tells when the graph lets go of it."""

    def __init__(self, tensor: Tensor, ledger: SavedTensorCounter, place: int, size: int) -> None:
        self.tensor, self._ledger, self._place, self._size = tensor, ledger, place, size

    def __del__(self) -> None:
        self._ledger.let_go(self._place, self._size)


def _unpack(packed: Tensor | _GraphTensor) -> Tensor:
    return packed if isinstance(packed, torch.Tensor) else packed.tensor


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
