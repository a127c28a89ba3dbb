"""The lean pass for single tokens on a static cache, translated to machine code once for each size."""

from __future__ import annotations

from typing import Protocol

import torch
from torch.nn import functional as F

from core.caches.tensors.static_layers import FixedSizeLayer, PreallocatedStaticCache
from core.decoding.forward.fused_llama import FusedLlama, get_fused_llama
from core.models.loaded_model import LoadedModel


class StaticCacheView(Protocol):
    """A cache whose layers are all of one fixed size."""

    layers: list[FixedSizeLayer]


class CompiledStep:
    """One token at a time, [1, 1] ids, for a cache whose layers are all of one fixed size."""

    def __init__(self, fused: FusedLlama) -> None:
        self._fused = fused
        mode = "reduce-overhead" if fused.embed.device.type == "cuda" else "default"
        self._compiled = torch.compile(self._step, dynamic=False, fullgraph=True, mode=mode)

    def supports(self, ids: torch.Tensor, cache: StaticCacheView, has_positions: bool = False) -> bool:
        """Whether it can read `ids` [B, n]: one token behind a prompt that was read, in its usual place."""
        return ids.shape[1] == 1 and not has_positions and bool(cache.layers[0].is_initialized)

    def is_current(self, fused: FusedLlama) -> bool:
        """Whether it was made from this pass."""
        return self._fused is fused

    def __call__(
        self, ids: torch.Tensor, cache: StaticCacheView, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None, extra_capacity: int = 0,
    ) -> torch.Tensor:  # fmt: skip
        """Logits [1, 1, V]; the cache gains the token."""
        layers = cache.layers
        room, place = layers[0].max_cache_len, layers[0].cumulative_length
        cos, sin = self._fused.rotary_tables(room)
        logits: torch.Tensor = self._compiled(
            ids, place, cos, sin, [layer.keys for layer in layers], [layer.values for layer in layers]
        )
        for layer in layers:
            layer.cumulative_length.add_(1)
        return logits

    def _step(
        self, ids: torch.Tensor, position: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor,
        keys: list[torch.Tensor], values: list[torch.Tensor],
    ) -> torch.Tensor:  # fmt: skip
        lean, index = self._fused, position.view(1)
        turn = cos.index_select(0, index), sin.index_select(0, index)
        hidden = F.embedding(ids, lean.embed)
        seen = torch.arange(keys[0].shape[2], device=ids.device)[None] <= position
        for number, layer in enumerate(lean.layers):
            queries, key, value = lean.project(layer, hidden, *turn)
            keys[number].index_copy_(2, index, key)
            values[number].index_copy_(2, index, value)
            read = F.scaled_dot_product_attention(
                queries, keys[number], values[number], attn_mask=seen, enable_gqa=lean.is_grouped
            )
            hidden = hidden + lean.merge_heads(layer, read)
            hidden = hidden + lean.mlp(layer, hidden)
        return lean.logits(hidden)


def get_compiled_step(model: LoadedModel, cache: object) -> CompiledStep | None:
    """The compiled step of a model that has a lean pass, for a static cache that wants it; kept with the model."""
    if not isinstance(cache, PreallocatedStaticCache) or not cache.compiled:
        return None
    if not all(type(layer) is FixedSizeLayer for layer in cache.layers):
        return None
    lean = get_fused_llama(model)
    if lean is None:
        return None
    known: CompiledStep | None = model.remembered.get("compiled_step")
    if known is None or not known.is_current(lean):
        model.remembered["compiled_step"] = known = CompiledStep(lean)
    return known
