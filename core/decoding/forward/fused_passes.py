"""Fused forward pass for decoders of many families and dtypes: uses their weights without nn.Module overhead."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicCache

from core.caches.tensors.dynamic_layers import is_plain_dynamic_layer
from core.caches.tensors.static_layers import FixedSizeLayer, PreallocatedStaticCache
from core.decoding.forward.fused_llama import (
    MAX_JOINED_BYTES,
    FusedLlama,
    get_fused_llama,
    has_growing_layers,
    is_unmodified,
    matches_module,
    weight_bytes,
    weights_fingerprint,
)
from core.decoding.forward.module_map import DecoderLayer, DecoderModules, map_modules
from core.models.loaded_model import LoadedModel
from core.models.quantized.packed_layers import content_hashes
from core.system.device_memory import is_out_of_memory

Rotation = tuple[torch.Tensor, torch.Tensor]
"""cos and signed sin (first half negated), [n, rotated width]."""


class FusedDecoder:
    """Fused decoder: `__call__(ids [B, n], cache)` returns float32 logits [B, keep, V] like the module, and extends the
    cache.
    """

    def __init__(self, network: Any, copies: bool) -> None:
        """Collect the network's modules. Raises UnsupportedArchitecture."""
        self._modules: DecoderModules = map_modules(network, copies)
        self._tables: dict[str, Rotation] = {}
        self.dtype: torch.dtype = network.dtype
        self.has_windows = any(layer.window for layer in self._modules.layers)
        self.has_experts = any(isinstance(layer.mlp, torch.nn.Module) for layer in self._modules.layers)

    def __call__(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return logits. `mask`: additive [.., n, P + n], default causal; `positions` [n] or [1, n], default following
        the cache.
        """
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
        self,
        layer: DecoderLayer,
        index: int,
        hidden: torch.Tensor,
        turn: Rotation | None,
        cache: Cache,
        masks: _AttentionMasks,
    ) -> torch.Tensor:
        read = self._attend(layer, index, layer.norm(hidden), turn, cache, masks)
        if layer.norm_out is not None:
            read = layer.norm_out(read)
        if layer.is_parallel:
            return layer.mlp(layer.norm_mlp(hidden)).add_(read).add_(hidden)
        hidden = hidden + read
        thought = layer.mlp(layer.norm_mlp(hidden))
        return hidden + (thought if layer.norm_mlp_out is None else layer.norm_mlp_out(thought))

    def _attend(
        self,
        layer: DecoderLayer,
        index: int,
        normed: torch.Tensor,
        turn: Rotation | None,
        cache: Cache,
        masks: _AttentionMasks,
    ) -> torch.Tensor:
        parts, (batch, count, _) = self._modules, normed.shape
        queries, new_keys, new_values = self._split_heads(layer, layer.project(normed), turn)
        keys, values = cache.update(new_keys, new_values, index)
        total = masks.past + count
        if keys.shape[-2] > total:  # a cache of fixed size: positions after the text are empty
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
        """Return queries, keys and values [B, heads, n, width]; rotary embeddings are applied to the first two."""
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
        """Attention with soft-capped logits: c · tanh(x / c) (Gemma 2)."""
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
        """Return cos and signed sin at `places` [n]."""
        min_length = int(places[-1]) + 1 if len(places) == 1 else int(places.max()) + 1
        known = self._tables.get(kind)
        if known is None or min_length > len(known[0]):
            cos, sin = self._modules.ropes[kind](torch.arange(max(512, 2 * min_length), device=places.device)[None])
            half = sin.shape[-1] // 2
            signed = torch.cat([-sin[0, :, :half], sin[0, :, half:]], -1)
            self._tables[kind] = known = cos[0].to(self.dtype), signed.to(self.dtype)
        return known[0][places], known[1][places]


class _AttentionMasks:
    """Attention masks of one pass, created once per window size."""

    def __init__(self, mask: torch.Tensor | None, positions: torch.Tensor, past: int, dtype: torch.dtype) -> None:
        self.past = past
        self._mask, self._positions, self._dtype = mask, positions, dtype
        self._cache: dict[int | None, torch.Tensor | None] = {}

    def get(self, window: int | None) -> torch.Tensor | None:
        """Return the additive mask [.., n, P + n]; None where no mask is needed."""
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
    """Apply the rotary embedding.

    rotate_half(x) · sin equals x with its halves swapped, times sin with its first half negated. With partial rotary
    embeddings the other dimensions are unchanged.
    """
    width = cos.shape[-1]
    if width == states.shape[-1]:
        return torch.addcmul(states * cos, states.roll(width // 2, -1), sin)
    first = states[..., :width]
    return torch.cat([torch.addcmul(first * cos, first.roll(width // 2, -1), sin), states[..., width:]], -1)


def causal_mask(count: int, past: int, like: torch.Tensor) -> torch.Tensor:
    """Return the additive mask [n, P + n]: every position attends to the past, itself and those before it."""
    mask = torch.full((count, past + count), torch.finfo(like.dtype).min, dtype=like.dtype, device=like.device)
    return mask.triu_(past + 1)


log = logging.getLogger(__name__)

_KEY = "lean_decoder"


class FusedForward(Protocol):
    """A pass that returns float32 logits [B, keep, V] of ids [B, n] and appends them to the cache."""

    def __call__(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor: ...  # fmt: skip


@dataclass(frozen=True, slots=True)
class _FusedPassTrial:
    """Result of trying to build a fused decoder for a module in a certain state."""

    fingerprint: object
    decoder: FusedDecoder | None


def select_fused_pass(model: LoadedModel, cache: object) -> FusedForward | None:
    """Return the model's fused pass for a cache, if both support one."""
    if not has_growing_layers(cache):
        return None
    llama: FusedLlama | None = get_fused_llama(model)
    if llama is not None:
        return llama
    decoder = get_fused_decoder(model)
    return decoder if decoder is None or not decoder.has_windows or _has_standard_layers(cache) else None


def get_fused_decoder(model: LoadedModel) -> FusedDecoder | None:
    """Return the fused decoder, kept with the model; rebuilt when weights change, None while the module is hooked or
    patched.
    """
    network = model.model
    modules = tuple(network.modules())  # collected once: this runs before every generation
    if not _can_be_fused(model) or network.training or not is_unmodified(modules):
        return None
    stamp = (weights_fingerprint(modules), content_hashes(modules))
    tried: _FusedPassTrial | None = model.strategy_data.get(_KEY)
    if tried is None or tried.fingerprint != stamp:
        model.strategy_data[_KEY] = tried = _FusedPassTrial(stamp, _build_fused_decoder(model))
    return tried.decoder


def discard_fused_decoder(model: LoadedModel) -> None:
    """Discard the fused decoder after its module's weights were moved."""
    model.strategy_data.pop(_KEY, None)


def _can_be_fused(model: LoadedModel) -> bool:
    return (
        not model.is_encoder_decoder
        and not model.is_recurrent
        and model.dtype in (torch.float32, torch.bfloat16)
        and model.config._attn_implementation in ("sdpa", "eager")
    )


def _build_fused_decoder(model: LoadedModel) -> FusedDecoder | None:
    """Build a fused decoder and return it if its output matches the module's."""
    network: Any = model.model
    try:
        decoder = FusedDecoder(network, weight_bytes(network) <= MAX_JOINED_BYTES)
        if decoder.has_experts and not model.has_exact_dtype:
            return None  # in 16 bits, tokens close to a tie between experts would be routed differently
        return decoder if matches_module(decoder, model) else None
    except Exception as error:  # any error caused by a misidentified submodule
        if is_out_of_memory(error):
            raise
        log.debug("no lean pass for %s: %s", type(network).__name__, error)
        return None


def _has_standard_layers(cache: object) -> bool:
    """Whether all layers are transformers' standard ones, whose positions are those of the text."""
    return isinstance(cache, DynamicCache) and all(map(is_plain_dynamic_layer, cache.layers))


class StaticCacheView(Protocol):
    """A cache whose layers all have the same fixed size."""

    layers: list[FixedSizeLayer]


class CompiledStep:
    """One-token decode step ([1, 1] ids) for a cache whose layers all have the same fixed size."""

    def __init__(self, fused: FusedLlama) -> None:
        self._fused = fused
        mode = "reduce-overhead" if fused.embed.device.type == "cuda" else "default"
        self._compiled = torch.compile(self._step, dynamic=False, fullgraph=True, mode=mode)

    def supports(self, ids: torch.Tensor, cache: StaticCacheView, has_positions: bool = False) -> bool:
        """Whether it supports `ids` [B, n]: one token after the prompt, at its default position."""
        return ids.shape[1] == 1 and not has_positions and bool(cache.layers[0].is_initialized)

    def is_current(self, fused: FusedLlama) -> bool:
        """Whether it was built from this pass."""
        return self._fused is fused

    def __call__(
        self, ids: torch.Tensor, cache: StaticCacheView, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None, extra_capacity: int = 0,
    ) -> torch.Tensor:  # fmt: skip
        """Return logits [1, 1, V]; the token is added to the cache."""
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
    """Return the compiled step of a model with a fused pass, for a static cache that requests it; kept with the
    model.
    """
    if not isinstance(cache, PreallocatedStaticCache) or not cache.compiled:
        return None
    if not all(type(layer) is FixedSizeLayer for layer in cache.layers):
        return None
    lean = get_fused_llama(model)
    if lean is None:
        return None
    known: CompiledStep | None = model.strategy_data.get("compiled_step")
    if known is None or not known.is_current(lean):
        model.strategy_data["compiled_step"] = known = CompiledStep(lean)
    return known
