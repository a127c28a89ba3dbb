"""What the lean pass uses of a Llama-like module, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import torch
from torch import nn


class LlamaAttention(Protocol):
    """Four linear maps; some architectures norm queries and keys too (`q_norm`, `k_norm`)."""

    q_proj: nn.Linear
    k_proj: nn.Linear
    v_proj: nn.Linear
    o_proj: nn.Linear


class LlamaMlp(Protocol):
    """Two maps up, one down, an activation between them."""

    gate_proj: nn.Linear
    up_proj: nn.Linear
    down_proj: nn.Linear
    act_fn: Callable[[torch.Tensor], torch.Tensor]


class LlamaNorm(Protocol):
    """Root mean square."""

    weight: torch.Tensor


class LlamaLayer(Protocol):
    """A layer."""

    input_layernorm: LlamaNorm
    self_attn: LlamaAttention
    post_attention_layernorm: LlamaNorm
    mlp: LlamaMlp


class LlamaHead(Protocol):
    """From hidden states to logits."""

    weight: torch.Tensor
    bias: torch.Tensor | None


class LlamaBackbone(Protocol):
    """Everything below the head."""

    embed_tokens: nn.Embedding
    layers: Iterable[LlamaLayer]
    norm: LlamaNorm
    rotary_emb: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class LlamaShape(Protocol):
    """Sizes and kinds."""

    rms_norm_eps: float
    hidden_size: int
    hidden_act: str
    num_attention_heads: int
    num_key_value_heads: int
    rope_parameters: Mapping[str, object]
    _attn_implementation: str


class LlamaModule(Protocol):
    """The whole module."""

    config: LlamaShape
    model: LlamaBackbone
    lm_head: LlamaHead
    dtype: torch.dtype
    training: bool
    forward: Callable[..., object]

    def parameters(self) -> Iterator[nn.Parameter]:
        """All weights."""

    def modules(self) -> Iterator[nn.Module]:
        """Itself and all its parts."""
