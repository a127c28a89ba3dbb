"""Muon: momentum whose update is made orthogonal, for the matrices inside a network.

After Keller Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024), with
the step size matched to Adam's as in Liu et al., "Muon is scalable for LLM training" (2025).
Equal shapes are stacked, so the Newton-Schulz iteration is a few batched products.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrices: Tensor, rounds: int = 5) -> Tensor:
    """The nearest semi-orthogonal matrices, roughly, to a stack of shape (n, rows, columns)."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(rounds):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalized, with decoupled weight decay; two-dimensional parameters only."""

    def __init__(self, params: Iterable[Tensor], lr: float, momentum: float = 0.95, weight_decay: float = 0.1) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # no loss is given back
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    alike[parameter.shape].append(parameter)
            for parameters in alike.values():
                self._update(parameters, group)

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        directions = []
        for parameter in parameters:
            state = self.state[parameter]
            average = state.setdefault("momentum", torch.zeros_like(parameter))
            average.lerp_(parameter.grad, 1 - group["momentum"])
            directions.append(parameter.grad.lerp(average, group["momentum"]))
        updates = orthogonalize(torch.stack(directions))
        scale = 0.2 * max(parameters[0].shape) ** 0.5
        for parameter, update in zip(parameters, updates, strict=True):
            parameter.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"] * scale)
