"""Mamba's selective scan for training on a processor: a step at a time, nothing kept but the states.

Gu and Dao, "Mamba: linear-time sequence modeling with selective state spaces" (2023), section 3. transformers' own
loop remembers four large tensors a step for the gradients; here the backward pass makes them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


class SelectiveScan(torch.autograd.Function):
    """y_t = Σ_n C_t[n] h_t[.., n] with h_t = exp(Δ_t A) h_{t−1} + Δ_t u_t B_t.

    Shapes, length first: u, Δ [L, batch, D]; A [D, N]; B, C [L, batch, N]; y [L, batch, D].
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        """The scan; keeps every state for the way back."""
        length, batch, width = u.shape
        states = u.new_zeros(length + 1, batch, width, a.shape[1])
        outputs = torch.empty_like(u)
        driven = delta * u
        for t in range(length):
            decay = (delta[t][..., None] * a).exp_()
            state = torch.mul(decay, states[t], out=states[t + 1])
            state.addcmul_(driven[t][..., None], b[t][:, None])
            outputs[t] = torch.bmm(state, c[t][..., None])[..., 0]
        ctx.save_for_backward(u, delta, a, b, c, states)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        """Gradients of u, Δ, A, B, C."""
        u, delta, a, b, c, states = ctx.saved_tensors
        (above,) = grads
        from_state = torch.zeros_like(states[0])
        by_drive, by_exponent = torch.empty_like(u), torch.empty_like(u)
        by_a, by_b, by_c = torch.zeros_like(states[0]), torch.empty_like(b), torch.empty_like(c)
        driven = delta * u
        for t in range(len(u) - 1, -1, -1):
            from_state.addcmul_(above[t][..., None], c[t][:, None])
            by_c[t] = torch.bmm(above[t][:, None], states[t + 1])[:, 0]
            by_drive[t] = torch.bmm(from_state, b[t][..., None])[..., 0]
            by_b[t] = torch.bmm(driven[t][:, None], from_state)[:, 0]
            from_state *= (delta[t][..., None] * a).exp_()
            exponent = from_state * states[t]  # gradient of Δ A
            by_a.addcmul_(exponent, delta[t][..., None])
            by_exponent[t] = exponent.mul_(a).sum(-1)
        return by_drive * delta, by_drive * u + by_exponent, by_a.sum(0), by_b, by_c


def selective_scan(
    hidden_states: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, z: Tensor,
    delta_bias: Tensor, **rest: Any,
) -> Tensor:  # fmt: skip
    """In place of transformers' function of the same arguments: u, Δ [batch, D, L]; B, C [batch, N, L]."""
    delta = functional.softplus(dt + delta_bias[:, None])
    first = (2, 0, 1)
    scanned = SelectiveScan.apply(
        hidden_states.permute(first), delta.permute(first), A, B.permute(first), C.permute(first)
    )
    output: Tensor = (scanned.permute(1, 2, 0) + hidden_states * D[:, None]) * functional.silu(z)
    return output


@contextmanager
def installed() -> Iterator[None]:
    """Let transformers' Mamba train through this scan."""
    from transformers.models.mamba import modeling_mamba

    own = modeling_mamba.mamba_selective_scan
    modeling_mamba.mamba_selective_scan = selective_scan
    try:
        yield
    finally:
        modeling_mamba.mamba_selective_scan = own
