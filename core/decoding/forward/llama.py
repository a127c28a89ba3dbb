"""What the lean pass uses of a Llama-like module, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import torch
from torch import nn


class Attention(Protocol):
    """Four linear maps; some architectures norm queries and keys too (`q_norm`, `k_norm`)."""

    q_proj: nn.Linear
    k_proj: nn.Linear
    v_proj: nn.Linear
    o_proj: nn.Linear


class FeedForward(Protocol):
    """Two maps up, one down, an activation between them."""

    gate_proj: nn.Linear
    up_proj: nn.Linear
    down_proj: nn.Linear
    act_fn: Callable[[torch.Tensor], torch.Tensor]


class Norm(Protocol):
    """Root mean square."""

    weight: torch.Tensor


class Block(Protocol):
    """A layer."""

    input_layernorm: Norm
    self_attn: Attention
    post_attention_layernorm: Norm
    mlp: FeedForward


class Head(Protocol):
    """From hidden states to logits."""

    weight: torch.Tensor
    bias: torch.Tensor | None


class Trunk(Protocol):
    """Everything below the head."""

    embed_tokens: nn.Embedding
    layers: Iterable[Block]
    norm: Norm
    rotary_emb: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class Config(Protocol):
    """Sizes and kinds."""

    rms_norm_eps: float
    hidden_size: int
    hidden_act: str
    num_attention_heads: int
    num_key_value_heads: int
    rope_parameters: Mapping[str, object]
    _attn_implementation: str


class Llama(Protocol):
    """The whole module."""

    config: Config
    model: Trunk
    lm_head: Head
    dtype: torch.dtype
    training: bool
    forward: Callable[..., object]

    def parameters(self) -> Iterator[nn.Parameter]:
        """All weights."""

    def modules(self) -> Iterator[nn.Module]:
        """Itself and all its parts."""
