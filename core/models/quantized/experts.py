"""The experts of a mixture, packed one by one, behind the face of the large tensor that a module reads them from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import nn
from torch.nn import functional as F

from core.models.quantized.packed_layers import PackedLinear


class PackedExperts(nn.Module):
    """Stands where a module has a parameter [experts, outputs, inputs]; `bank[e]` is what `F.linear` takes for one."""

    def __init__(self, experts: int, outputs: int, inputs: int, bits: int) -> None:
        super().__init__()
        self.experts = nn.ModuleList(PackedLinear(outputs, inputs, bits, None) for _ in range(experts))

    def pack(self, weights: torch.Tensor) -> None:
        """Pack [experts, outputs, inputs]."""
        for number, rows in enumerate(weights):
            self[number].layer.pack(rows)

    def __getitem__(self, expert: int | torch.Tensor) -> _ExpertWeights:
        layer = self.experts[int(expert)]
        assert isinstance(layer, PackedLinear)
        return _ExpertWeights(layer)


class _ExpertWeights:
    """One expert's weights, as `F.linear` takes them; nothing else can be done with them."""

    def __init__(self, layer: PackedLinear) -> None:
        self.layer = layer

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., object], types: Sequence[type], args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:  # fmt: skip
        """Every function of torch that meets one of these asks here instead."""
        if function is not F.linear or not isinstance(args[1], cls) or kwargs or len(args) > 2:
            return NotImplemented
        return args[1].layer(args[0])
