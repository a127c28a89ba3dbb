"""A lean forward pass for decoders of many families and number types: their own weights, without the walk through
their modules."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache

from core.decoding.forward.module_map import DecoderLayer, DecoderModules, map_modules

Rotation = tuple[torch.Tensor, torch.Tensor]
"""cos, and sin with its first half negated, [n, rotated width]."""


class FusedDecoder:
    """`__call__(ids [B, n], cache)` gives float32 logits [B, keep, V] as the module would, and extends the cache."""

    def __init__(self, network: Any, copies: bool) -> None:
        """Raises Unfamiliar."""
        self._modules: DecoderModules = map_modules(network, copies)
        self._tables: dict[str, Rotation] = {}
        self.dtype: torch.dtype = network.dtype
        self.has_windows = any(layer.window for layer in self._modules.layers)
        self.has_experts = any(isinstance(layer.mlp, torch.nn.Module) for layer in self._modules.layers)

    def __call__(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """`mask`: additive [.., n, P + n], default causal; `positions` [n] or [1, n], default following the cache."""
        parts, past, count = self._modules, int(cache.get_seq_length()), ids.shape[1]
        places = torch.arange(past, past + count, device=ids.device) if positions is None else positions.reshape(-1)
        hidden = parts.embed(ids)
        if parts.positions is not None:
            table, start = parts.positions
            hidden = hidden + F.embedding(places + start, table)
        turns = {kind: self._rotation(kind, places) for kind in parts.ropes}
        masks = _AttentionMasks(mask, places, past, self.dtype)
        for index, layer in enumerate(parts.layers):
            hidden = self._run_layer(layer, index, hidden, turns.get(layer.rope), cache, masks)
        return self._logits(hidden[:, -keep:] if keep else hidden)

    def _run_layer(
        self, layer: DecoderLayer, index: int, hidden: torch.Tensor, turn: Rotation | None, cache: Cache, masks: _AttentionMasks
    ) -> torch.Tensor:  # fmt: skip
        read = self._attend(layer, index, layer.norm(hidden), turn, cache, masks)
        if layer.norm_out is not None:
            read = layer.norm_out(read)
        if layer.is_parallel:
            return layer.mlp(layer.norm_mlp(hidden)).add_(read).add_(hidden)
        hidden = hidden + read
        thought = layer.mlp(layer.norm_mlp(hidden))
        return hidden + (thought if layer.norm_mlp_out is None else layer.norm_mlp_out(thought))

    def _attend(
        self, layer: DecoderLayer, index: int, normed: torch.Tensor, turn: Rotation | None, cache: Cache, masks: _AttentionMasks
    ) -> torch.Tensor:  # fmt: skip
        parts, (batch, count, _) = self._modules, normed.shape
        queries, new_keys, new_values = self._split_heads(layer, layer.project(normed), turn)
        keys, values = cache.update(new_keys, new_values, index)
        total = masks.past + count
        if keys.shape[-2] > total:  # a cache of fixed size: the places behind the text are empty
            keys, values = keys[:, :, :total], values[:, :, :total]
        mask = masks.get(layer.window)
        causal = mask is None and count > 1
        if parts.attention_cap is not None:
            read = self._capped_attention(queries, keys, values, mask, causal)
        else:
            read = F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=mask, is_causal=causal, scale=parts.scaling,
                enable_gqa=parts.heads != parts.kv_heads,
            )  # fmt: skip
        return layer.out(read.transpose(1, 2).reshape(batch, count, -1))

    def _split_heads(
        self, layer: DecoderLayer, joined: torch.Tensor, turn: Rotation | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries, keys and values [B, heads, n, width], the first two turned to their places."""
        parts, (batch, count, _) = self._modules, joined.shape
        if layer.is_interleaved:
            by_head = joined.view(batch, count, parts.heads, 3, parts.width)
            queries, keys, values = by_head.permute(3, 0, 2, 1, 4).unbind(0)
        else:
            heads, to_values = joined.view(batch, count, -1, parts.width).transpose(1, 2), parts.heads + parts.kv_heads
            queries, keys, values = heads[:, : parts.heads], heads[:, parts.heads : to_values], heads[:, to_values:]
        if layer.q_norm is not None and layer.k_norm is not None:
            queries, keys = layer.q_norm(queries), layer.k_norm(keys)
        if turn is not None:
            queries, keys = _rotate(queries, *turn), _rotate(keys, *turn)
        return queries, keys, values

    def _capped_attention(
        self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None, causal: bool
    ) -> torch.Tensor:
        """Attention whose logits are bent towards a cap: c · tanh(x / c) (Gemma 2)."""
        cap, repeats = self._modules.attention_cap or 1.0, self._modules.heads // self._modules.kv_heads
        keys, values = keys.repeat_interleave(repeats, 1), values.repeat_interleave(repeats, 1)
        logits = torch.tanh(queries @ keys.transpose(-1, -2) * self._modules.scaling / cap) * cap
        if causal:
            mask = causal_mask(queries.shape[2], keys.shape[2] - queries.shape[2], queries)
        logits = logits if mask is None else logits + mask
        return logits.softmax(-1, dtype=torch.float32).to(queries.dtype) @ values

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = self._modules.head(self._modules.norm(hidden))
        if (cap := self._modules.logit_cap) is not None:
            logits = torch.tanh(logits / cap) * cap
        return logits.float()

    def _rotation(self, kind: str, places: torch.Tensor) -> Rotation:
        """cos and signed sin at `places` [n]."""
        min_length = int(places[-1]) + 1 if len(places) == 1 else int(places.max()) + 1
        known = self._tables.get(kind)
        if known is None or min_length > len(known[0]):
            cos, sin = self._modules.ropes[kind](torch.arange(max(512, 2 * min_length), device=places.device)[None])
            half = sin.shape[-1] // 2
            signed = torch.cat([-sin[0, :, :half], sin[0, :, half:]], -1)
            self._tables[kind] = known = cos[0].to(self.dtype), signed.to(self.dtype)
        return known[0][places], known[1][places]


class _AttentionMasks:
    """What each position may see, made once a pass for each width of window."""

    def __init__(self, mask: torch.Tensor | None, positions: torch.Tensor, past: int, dtype: torch.dtype) -> None:
        self.past = past
        self._mask, self._positions, self._dtype = mask, positions, dtype
        self._cache: dict[int | None, torch.Tensor | None] = {}

    def get(self, window: int | None) -> torch.Tensor | None:
        """Additive [.., n, P + n]; None where everything before a position is seen and no mask is needed."""
        count = len(self._positions)
        if window is not None and self.past + count <= window:
            window = None
        if window not in self._cache:
            self._cache[window] = self._make(window)
        return self._cache[window]

    def _make(self, window: int | None) -> torch.Tensor | None:
        count, mask = len(self._positions), self._mask
        if mask is None and (count > 1 and (self.past or window)):
            mask = causal_mask(count, self.past, self._positions.new_empty(0, dtype=self._dtype))
        if window is None:
            return mask
        ahead = torch.cat([torch.arange(self.past, device=self._positions.device), self._positions])
        far = self._positions[:, None] - ahead[None] >= window
        if mask is None:
            mask = torch.zeros(far.shape, dtype=self._dtype, device=far.device)
        return mask.masked_fill(far, torch.finfo(self._dtype).min)


def _rotate(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turned to their places; rotate_half(x) · sin is x with its halves swapped, times sin with its first half
    negated. Where only the first numbers of a head are turned, the others stay."""
    width = cos.shape[-1]
    if width == states.shape[-1]:
        return torch.addcmul(states * cos, states.roll(width // 2, -1), sin)
    first = states[..., :width]
    return torch.cat([torch.addcmul(first * cos, first.roll(width // 2, -1), sin), states[..., width:]], -1)


def causal_mask(count: int, past: int, like: torch.Tensor) -> torch.Tensor:
    """Additive [n, P + n]: every position sees the past, itself and those before it."""
    mask = torch.full((count, past + count), torch.finfo(like.dtype).min, dtype=like.dtype, device=like.device)
    return mask.triu_(past + 1)
