"""The versions of one stage's weights that PipeDream holds at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from core.labs.processes.shard_bytes import local_bytes
from core.labs.scale.pipeline_schedule import UPDATE, Box


class WeightVersions:
    """Weights by how often they had been updated. One that nothing will use any more is given up, and where that is the
    newest, it is changed in place: so without stashing there is never a second."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self.newest = 0
        self._weights = {0: [weight.detach().requires_grad_() for weight in weights]}
        self._uses_left: Counter[int] = Counter()
        self.peak_extra_bytes = 0
        """Bytes at most, since `begin`, of all but the newest."""

    def begin(self, boxes: Iterable[Box]) -> None:
        """What is to be done next with them, counted from the newest as version 0."""
        self._weights = {0: self._weights[self.newest]}
        self._uses_left = Counter(box.version for box in boxes if box.kind != UPDATE)
        self.newest = self.peak_extra_bytes = 0

    def __iter__(self) -> Iterator[Tensor]:
        """The tensors of all versions."""
        return (weight for version in self._weights.values() for weight in version)

    def use_version(self, version: int) -> list[Tensor]:
        """Leaves of a graph to be; one use of that version."""
        self._uses_left[version] -= 1
        return self._weights[version]

    def update(self, gradients: Sequence[Tensor], rate: float) -> None:
        """The newest less `rate` times these."""
        old = self._weights[self.newest]
        if self._uses_left[self.newest] > 0:
            new = [
                torch.sub(one.detach(), by, alpha=rate).requires_grad_() for one, by in zip(old, gradients, strict=True)
            ]
        else:
            new = self._weights.pop(self.newest)
            for weight, gradient in zip(new, gradients, strict=True):
                weight.data.sub_(gradient, alpha=rate)  # a graph on the way may hold it: without stashing it does
        self.newest += 1
        self._weights[self.newest] = new
        self.drop_unused()
        self.peak_extra_bytes = max(self.peak_extra_bytes, local_bytes(self) - local_bytes(new))

    def drop_unused(self) -> None:
        """Let go of all that nothing will use."""
        for version in [number for number in self._weights if number != self.newest and self._uses_left[number] <= 0]:
            del self._weights[version]
