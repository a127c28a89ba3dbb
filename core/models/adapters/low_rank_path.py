"""Path of adapters beside the weights of one layer, which are never changed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

_SERIALS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class LowRankFactors:
    """Change of one layer by one adapter: W' = W + scale · up · down (Hu et al. 2021, "LoRA").

    With a `magnitude`, every row of W' gets that norm (Liu et al. 2024, "DoRA").
    """

    down: torch.Tensor
    """float32 [rank, inputs]; for an embedding [rank, tokens]."""
    up: torch.Tensor
    """float32 [outputs, rank]."""
    scale: float
    bias: torch.Tensor | None = None
    """float32 [outputs], added with the product."""
    magnitude: torch.Tensor | None = None
    """float32 [outputs]."""
    gain: torch.Tensor | None = None
    """float32 [outputs], the magnitude divided by the norm of each row; set when the layer is known."""

    @property
    def rank(self) -> int:
        """Rank of the change."""
        return len(self.down)

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors."""
        return sum(one.nbytes for one in (self.down, self.up, self.bias, self.magnitude) if one is not None)

    def delta(self) -> torch.Tensor:
        """Return scale · up · down, [outputs, inputs]."""
        return self.scale * (self.up @ self.down)


class LowRankPath:
    """A forward hook of a linear layer or an embedding: y = gain · Wx + b + up (down x) + bias.

    The factors of all active adapters are joined to one product. Without an active adapter the layer's own output is
    returned as it is, so that a strength of 0 equals the base to the last bit.
    """

    def __init__(self, module: nn.Module, outputs: int, embedding_factor: float | None = None) -> None:
        """`embedding_factor`: of an embedding, the factor that its rows are multiplied by."""
        self.outputs, self.serial = outputs, next(_SERIALS)
        self.is_embedding = embedding_factor is not None
        self._factor = embedding_factor or 1.0
        self._module = module
        self.down: torch.Tensor | None = None
        """float32 [rank, inputs] of all active adapters; None if none is active."""
        self.up: torch.Tensor | None = None
        """float32 [rank, outputs], with scales and strengths."""
        self.gain: torch.Tensor | None = None
        self.bias: torch.Tensor | None = None
        self._handle = module.register_forward_hook(self)

    @property
    def is_active(self) -> bool:
        """Whether the output is changed."""
        return self.down is not None

    @property
    def rank(self) -> int:
        """Total rank of the active adapters."""
        return 0 if self.down is None else len(self.down)

    @torch.inference_mode(False)  # the tensors outlast the run in which they are set
    @torch.no_grad()
    def set_factors(self, active: Sequence[tuple[LowRankFactors, float]]) -> None:
        """Use these factors, each with a strength other than 0."""
        self.down = self.up = self.gain = self.bias = None
        if not active:
            return
        weight = self._module._parameters["weight"]
        assert weight is not None
        device = weight.device
        ups: list[torch.Tensor] = []
        for one, strength in active:
            up = one.up * (one.scale * strength * self._factor)
            if one.gain is not None:
                up = up * one.gain[:, None]
                more = strength * (one.gain - 1)
                self.gain = 1 + more if self.gain is None else self.gain + more
            if one.bias is not None:
                more = one.bias * (one.scale * strength)
                self.bias = more if self.bias is None else self.bias + more
            ups.append(up.t())
        self.down = torch.cat([one.down for one, _ in active]).to(device)
        self.up = torch.cat(ups).contiguous().to(device)
        self.gain = None if self.gain is None else self.gain.to(device)
        self.bias = None if self.bias is None else self.bias.to(device)

    def change(self, output: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Return what is added to the layer's output [.., outputs], float32; `inputs`: vectors [.., inputs] or ids."""
        assert self.down is not None
        assert self.up is not None
        if self.is_embedding:
            more = F.embedding(inputs, self.down.t()) @ self.up
        else:
            more = inputs.float() @ self.down.t() @ self.up
        if self.bias is not None:
            more = more + self.bias
        if self.gain is not None:
            own = self._module._parameters.get("bias")
            more = more + (self.gain - 1) * (output if own is None else output - own)
        return more

    def merged(self, weights: torch.Tensor) -> torch.Tensor:
        """Return float32 weights [outputs, inputs] with the change in them; of an embedding, rows [tokens, width]."""
        if self.down is None or self.up is None:
            return weights
        product = (self.down.t() @ self.up).cpu()
        if self.is_embedding:
            return weights + product / self._factor
        return (weights if self.gain is None else weights * self.gain[:, None].cpu()) + product.t()

    def remove(self) -> None:
        """Detach from the layer."""
        self._handle.remove()

    def __call__(self, _module: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:
        """Return the changed output of the layer."""
        return (output + self.change(output, inputs[0])).to(output.dtype) if self.is_active else output


def low_rank_path(module: nn.Module) -> LowRankPath | None:
    """Return the path of a layer; None without one."""
    return next((hook for hook in module._forward_hooks.values() if isinstance(hook, LowRankPath)), None)


def path_serials(module: nn.Module) -> tuple[int, ...]:
    """Return numbers that identify the paths of a layer."""
    return tuple(hook.serial for hook in module._forward_hooks.values() if isinstance(hook, LowRankPath))
