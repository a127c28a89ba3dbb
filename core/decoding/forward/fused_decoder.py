"""Fused forward pass: the numbers of a decoder's module without the time between its operations.

With a few million weights most of a token's time is spent in module calls, not arithmetic. This pass uses the module's
own weights (in small models query, key and value as one matrix, gate and up as another) and does the same operations in
the same order. It supports float32, bfloat16 and packed weights of every family whose submodules `module_map` finds. It
is used for unhooked, unpatched modules of torch's and transformers' own classes, after a check that its output matches
the module's; everything else goes through the module.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicCache, StaticCache

from decodescope.core.caches.tensors.adapted_layer import AdaptedLayer
from decodescope.core.caches.tensors.dynamic_layers import is_plain_dynamic_layer
from decodescope.core.decoding.forward.fused_layers import TensorFunction
from decodescope.core.decoding.forward.module_map import DecoderLayer, DecoderModules, Positions, map_modules
from decodescope.core.decoding.forward.rotary import RotaryTable, Rotation
from decodescope.core.decoding.tensor_utils import widest_float
from decodescope.core.models.adapters.low_rank_path import LowRankPath, path_serials
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.quantized.packed_layers import content_hashes, packed_bits
from decodescope.core.system.device_memory import is_out_of_memory

log = logging.getLogger(__name__)

MAX_JOINED_BYTES = 256 * 2**20
"""Maximum bytes of weights for which the joined matrices (a copy) are worth their memory."""
_KEY = "fused_decoder"
_WRITTEN_BY = ("transformers.", "torch.nn.", "decodescope.core.models.quantized.", "decodescope.core.models.gguf.")
_CAPTURING = "transformers.utils.output_capturing"
Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Queries [B, heads, n, width], keys and values [B, kv heads, n, width] of new tokens → output [B, heads, m, width]."""


class FusedDecoder:
    """Fused decoder: `__call__(ids [B, n], cache)` returns float32 logits [B, keep, V] like the module, and extends the
    cache.
    """

    def __init__(self, network: Any, copies: bool) -> None:
        """Collect the network's modules. Raises UnsupportedArchitecture."""
        self.modules: DecoderModules = map_modules(network, copies)
        self.dtype: torch.dtype = network.dtype
        self.has_windows = any(layer.window for layer in self.modules.layers)
        self._is_grouped = self.modules.heads != self.modules.kv_heads
        """Whether several query heads share a key–value head."""
        self._tables: dict[str, tuple[RotaryTable, RotaryTable]] = {}
        """For each kind the last table, and the same in the dtype of the weights."""

    @property
    def has_fixed_rotation(self) -> bool:
        """Whether the rotary embedding of a position never changes."""
        return all(rope.is_fixed for rope in self.modules.ropes.values())

    def __call__(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return logits of the last `keep` tokens of each row (all with 0).

        `mask`: additive [.., n, P + n], default causal; `positions` [n] or [1, n], default following the cache.
        """
        (hidden,) = deque(self._run_layers(ids, cache, keep, mask, positions), maxlen=1)
        return self.logits(hidden)

    def with_states(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:  # fmt: skip
        """Return logits like a call, and the hidden states [B, n, D] that the module returns: the embedding output and
        each layer's output, the last one after the final norm.
        """
        *states, last = self._run_layers(ids, cache, 0, mask, positions)
        logits, normed = self.head_output(last, keep)
        return logits, (*states, normed)

    def layer_states(self, ids: torch.Tensor, cache: Cache) -> torch.Tensor:
        """Return the hidden states [L + 1, B, n, D]: the embedding output, then each layer's output."""
        return torch.stack(list(self._run_layers(ids, cache, 0, None, None)))

    def head_output(self, last: torch.Tensor, keep: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits of the last `keep` tokens (all with 0) from the last layer's output [B, n, D], and that output
        after the final norm.
        """
        normed = last if self.modules.norm is None else self.modules.norm(last)
        kept = normed[:, -keep:] if keep else normed
        narrow = self.modules.narrow
        return self._project(kept if narrow is None else narrow(kept)), normed

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return float32 logits [.., V] of states [.., D] from any layer."""
        return self._project(self.modules.head_input(hidden))

    def _project(self, head_input: torch.Tensor) -> torch.Tensor:
        logits = self.modules.head(head_input)
        if (scale := self.modules.logit_scale) != 1.0:
            logits = logits * scale
        if (cap := self.modules.logit_cap) is not None:
            logits = torch.tanh(logits / cap) * cap
        return logits.float()

    def _run_layers(
        self, ids: torch.Tensor, cache: Cache, keep: int, mask: torch.Tensor | None, positions: torch.Tensor | None
    ) -> Iterator[torch.Tensor]:
        """Yield the embedding output and each layer's output, [B, n, D]; the last layer only for the last `keep`
        tokens (all with 0).
        """
        past, count = int(cache.get_seq_length()), ids.shape[1]
        places = slice(past, past + count) if positions is None else positions.reshape(-1)
        hidden = self.modules.embed_tokens(ids, places)
        yield hidden
        turns = self.rotations(places, past + count)  # looking for the last position would wait for a GPU
        masks = _AttentionMasks(mask, places, past, count, hidden)
        last = len(self.modules.layers) - 1
        for index, layer in enumerate(self.modules.layers):
            kept = keep if index == last and keep < count else 0  # after the last layer only these are needed
            attend = partial(self._attend, index, layer.window, cache, masks, kept)
            hidden = self.run_layer(layer, hidden, turns, attend, slice(-kept, None) if kept else None)
            yield hidden

    def run_layer(
        self, layer: DecoderLayer, hidden: torch.Tensor, turns: dict[str, tuple[Rotation, bool]], attend: Attention,
        rows: torch.Tensor | slice | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return a layer's output [B, n, D]. `attend` stores keys and values and computes attention; `rows`: the m
        tokens for which it returns an output, default all.
        """
        normed = hidden if layer.norm is None or layer.norms_sums else layer.norm(hidden)
        read = attend(*self._split_heads(layer, layer.project(normed), turns.get(layer.rope)))
        batch, _, count, _ = read.shape
        read = layer.out(read.transpose(1, 2).reshape(batch, count, -1))
        if rows is not None:
            hidden, normed = hidden[:, rows], normed[:, rows]
        if layer.norm_out is not None:
            read = layer.norm_out(read)
        if layer.is_parallel:
            return layer.mlp(normed if layer.norm_mlp is None else layer.norm_mlp(hidden)).add_(read).add_(hidden)
        hidden = self._add(layer, hidden, read, layer.norm)
        thought = layer.mlp(hidden if layer.norm_mlp is None or layer.norms_sums else layer.norm_mlp(hidden))
        if layer.norm_mlp_out is not None:
            thought = layer.norm_mlp_out(thought)
        return self._add(layer, hidden, thought, layer.norm_mlp)

    @staticmethod
    def _add(
        layer: DecoderLayer, hidden: torch.Tensor, more: torch.Tensor, norm: TensorFunction | None
    ) -> torch.Tensor:
        """Return the residual sum, normed where the layer norms sums."""
        found = hidden + (more if layer.residual_scale == 1.0 else more * layer.residual_scale)
        return norm(found) if layer.norms_sums and norm is not None else found

    def _split_heads(
        self, layer: DecoderLayer, joined: torch.Tensor, turn: tuple[Rotation, bool] | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries, keys and values [B, heads, n, width]; rotary embeddings are applied to the first two."""
        parts, (batch, count, _) = self.modules, joined.shape
        to_values = parts.heads + parts.kv_heads
        if parts.is_interleaved:
            groups = joined.view(batch, count, parts.kv_heads, -1, parts.width)
            joined = torch.cat(
                [groups[:, :, :, :-2].flatten(2), groups[..., -2, :].flatten(2), groups[..., -1, :].flatten(2)], -1
            )
        heads = joined.view(batch, count, -1, parts.width)
        turned, values = heads[:, :, :to_values], heads[:, :, to_values:].transpose(1, 2)
        if layer.q_norm is not None and layer.k_norm is not None:
            queries, keys = turned[:, :, : parts.heads], turned[:, :, parts.heads :]
            if layer.has_joint_norms:
                queries, keys = queries.flatten(2), keys.flatten(2)
            normed = layer.q_norm(queries), layer.k_norm(keys)
            turned = torch.cat([one.reshape(batch, count, -1, parts.width) for one in normed], 2)
        turned = turned.transpose(1, 2)
        if turn is not None:
            turned = _rotate(turned, *turn)
        return turned[:, : parts.heads], turned[:, parts.heads :], values

    def _attend(
        self, index: int, window: int | None, cache: Cache, masks: _AttentionMasks, keep: int, queries: torch.Tensor,
        new_keys: torch.Tensor, new_values: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        """Append keys and values to the cache and return the attention output of the last `keep` tokens, all with 0."""
        keys, values = cache.update(new_keys, new_values, index)
        total = masks.past + masks.count
        if keys.shape[-2] > total:  # a cache of fixed size: positions after the text are empty
            keys, values = keys[:, :, :total], values[:, :, :total]
        if keep:
            queries = queries[:, :, -keep:]
        return self.attention(queries, keys, values, masks.get(window, keep))

    def attention(
        self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the attention output; without a mask, the last query attends to every key and those before it to one
        less each.
        """
        parts, is_causal = self.modules, mask is None and queries.shape[2] > 1
        bias = parts.key_bias(keys.shape[2])
        if bias is not None:
            bias = bias.to(queries.dtype)[:, None]
            if is_causal:
                mask, is_causal = causal_mask(queries.shape[2], keys.shape[2] - queries.shape[2], queries), False
            mask = bias[None] if mask is None else mask + bias
        if parts.attention_cap is None:
            if self._is_grouped and queries.device.type == "cuda":
                return _grouped_attention(queries, keys, values, mask, is_causal, parts.scaling)
            return F.scaled_dot_product_attention(
                queries, keys, values, attn_mask=mask, is_causal=is_causal, scale=parts.scaling,
                enable_gqa=self._is_grouped,
            )  # fmt: skip
        cap, repeats = parts.attention_cap, parts.heads // parts.kv_heads  # c · tanh(x / c) (Gemma 2)
        keys, values = keys.repeat_interleave(repeats, 1), values.repeat_interleave(repeats, 1)
        logits = torch.tanh(queries @ keys.transpose(-1, -2) * parts.scaling / cap) * cap
        if is_causal:
            mask = causal_mask(queries.shape[2], keys.shape[2] - queries.shape[2], queries)
        logits = logits if mask is None else logits + mask
        return logits.softmax(-1, dtype=torch.float32).to(queries.dtype) @ values

    def rotations(self, places: Positions, length: int | None = None) -> dict[str, tuple[Rotation, bool]]:
        """Return cos and signed sin, [n, rotated width], at these positions, for every kind of rotary embedding, and
        whether it rotates neighbours. All positions are below `length`, if it is given.
        """
        if isinstance(places, slice):
            start, stop = places.start, places.stop
        elif self.has_fixed_rotation:
            start, stop = 0, int(places.max()) + 1 if length is None else length
        else:
            start, stop = int(places.min()), int(places.max()) + 1
        ropes = self.modules.ropes.items()
        return {kind: (self._table(kind, start, stop).at(places), rope.is_adjacent) for kind, rope in ropes}

    def rotary_table(self, kind: str, length: int) -> Rotation:
        """Return cos and signed sin of at least the first `length` positions of a fixed rotary embedding."""
        table = self._table(kind, 0, length)
        return table.cos, table.sin

    def _table(self, kind: str, start: int, stop: int) -> RotaryTable:
        """Return a table in the dtype of the weights, converted only when it changes."""
        table = self.modules.ropes[kind].lookup(start, stop)
        known = self._tables.get(kind)
        if known is None or known[0] is not table:
            made = RotaryTable(table.cos.to(self.dtype), table.sin.to(self.dtype), table.first)
            self._tables[kind] = known = table, made
        return known[1]


class _AttentionMasks:
    """Attention masks of one pass, created once per window size."""

    def __init__(
        self, mask: torch.Tensor | None, places: Positions, past: int, count: int, like: torch.Tensor
    ) -> None:  # fmt: skip
        self.past, self.count = past, count
        self._mask, self._places, self._like = mask, places, like
        self._cache: dict[tuple[int | None, int], torch.Tensor | None] = {}

    def get(self, window: int | None, keep: int) -> torch.Tensor | None:
        """Return the additive mask [.., n, P + n] of the last `keep` tokens (all with 0); None where no mask is
        needed.
        """
        if window is not None and self.past + self.count <= window:
            window = None
        key = window, keep
        if key not in self._cache:
            self._cache[key] = self._make(window, keep)
        return self._cache[key]

    def _make(self, window: int | None, keep: int) -> torch.Tensor | None:
        mask = self._mask
        if mask is None and self.count > 1 and keep != 1 and (self.past or window or keep):
            mask = causal_mask(self.count, self.past, self._like)
        if window is not None:
            index = torch.arange(self.past + self.count, device=self._like.device)
            own = index[self.past :] if isinstance(self._places, slice) else self._places
            far = own[:, None] - torch.cat([index[: self.past], own])[None] >= window
            mask = torch.zeros_like(far, dtype=self._like.dtype) if mask is None else mask
            mask = mask.masked_fill(far, torch.finfo(mask.dtype).min)
        return mask if mask is None else mask[..., -keep:, :]


def _rotate(states: torch.Tensor, rotation: Rotation, is_adjacent: bool) -> torch.Tensor:
    """Apply the rotary embedding.

    rotate_half(x) · sin equals x with the numbers of each pair swapped, times sin with the first one negated. With
    partial rotary embeddings the other dimensions are unchanged.
    """
    cos, sin = rotation
    width = cos.shape[-1]
    first = states if width == states.shape[-1] else states[..., :width]
    swapped = first.unflatten(-1, (-1, 2)).flip(-1).flatten(-2) if is_adjacent else first.roll(width // 2, -1)
    turned = torch.addcmul(first * cos, swapped, sin)
    return turned if width == states.shape[-1] else torch.cat([turned, states[..., width:]], -1)


_MAX_FOLDED = 64
"""Maximum number of queries whose mask is repeated for the heads of a group; with more, keys and values are cheaper."""


def _grouped_attention(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None, is_causal: bool,
    scale: float,
) -> torch.Tensor:  # fmt: skip
    """Return grouped-query attention by a fused kernel of CUDA.

    Of torch's kernels, only FlashAttention takes grouped heads, in 16 bits and without a mask; the memory-efficient one
    takes masks and float32, but as many heads of keys as of queries (`sdp_utils.cpp`). Everything else falls back to
    the math kernel, which stores all weights. The heads of a group attend to the same keys, so they become further
    queries of one head; a long prompt gets keys and values for every head instead.
    """
    (batch, heads, count, width), groups = queries.shape, keys.shape[1]
    if mask is None and queries.dtype != torch.float32:
        return F.scaled_dot_product_attention(
            queries, keys, values, is_causal=is_causal, scale=scale, enable_gqa=True
        )  # fmt: skip
    size = heads // groups
    if is_causal or count > _MAX_FOLDED:
        keys, values = (
            one[:, :, None].expand(-1, -1, size, -1, -1).reshape(batch, heads, -1, one.shape[-1])
            for one in (keys, values)
        )
        return F.scaled_dot_product_attention(queries, keys, values, mask, is_causal=is_causal, scale=scale)
    if mask is not None:
        mask = mask if mask.dim() > 2 else mask[None]
        if mask.shape[-3] == 1:
            mask = mask[..., None, :, :].expand(*mask.shape[:-2], size, *mask.shape[-2:])
        else:
            mask = mask.unflatten(-3, (groups, size))
        mask = mask.expand(*mask.shape[:-2], count, -1).flatten(-3, -2)
    folded = queries.reshape(batch, groups, size * count, width)
    read = F.scaled_dot_product_attention(folded, keys, values, mask, scale=scale)
    return read.reshape(batch, heads, count, -1)


def causal_mask(count: int, past: int, like: torch.Tensor) -> torch.Tensor:
    """Return the additive mask [n, P + n]: every position attends to the past, itself and those before it."""
    mask = torch.full((count, past + count), torch.finfo(like.dtype).min, dtype=like.dtype, device=like.device)
    return mask.triu_(past + 1)


@dataclass(frozen=True, slots=True)
class _FusedPassTrial:
    """Result of trying to build a fused decoder for a module in a certain state."""

    fingerprint: object
    decoder: FusedDecoder | None


def select_fused_pass(model: LoadedModel, cache: object) -> FusedDecoder | None:
    """Return the model's fused pass for a cache, if both support one."""
    decoder = get_fused_decoder(model) if has_growing_layers(cache) else None
    return decoder if decoder is None or not decoder.has_windows or _has_standard_layers(cache) else None


def get_fused_decoder(model: LoadedModel) -> FusedDecoder | None:
    """Return the fused decoder, kept with the model; rebuilt when weights change, None while the module is hooked or
    patched.
    """
    network = model.model
    modules = tuple(network.modules())  # collected once: this runs before every generation
    if not _can_be_fused(model) or network.training or not _is_unmodified(modules):
        return None
    stamp = (_weights_fingerprint(modules), content_hashes(modules))
    tried: _FusedPassTrial | None = model.strategy_data.get(_KEY)
    if tried is None or tried.fingerprint != stamp:
        model.strategy_data[_KEY] = tried = _FusedPassTrial(stamp, _build_fused_decoder(model))
    return tried.decoder


def discard_fused_decoder(model: LoadedModel) -> None:
    """Discard the fused decoder after its module's weights were moved."""
    model.strategy_data.pop(_KEY, None)


def can_join_matrices(network: torch.nn.Module) -> bool:
    """Return whether the network is so small that copies of its matrices are worth their memory."""
    return sum(p.numel() * p.element_size() for p in network.parameters()) <= MAX_JOINED_BYTES


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
        decoder = FusedDecoder(network, can_join_matrices(network))
        return decoder if matches_module(decoder, model) else None
    except Exception as error:  # any error caused by a misidentified submodule
        if is_out_of_memory(error):
            raise
        log.debug("no fused pass for %s: %s", type(network).__name__, error)
        return None


def _is_unmodified(modules: Iterable[torch.nn.Module]) -> bool:
    """Return whether every module has an original class and forward method (torch, transformers or this program) and no
    hooks.
    """
    return not any(_is_patched(module) or not _is_original_class(type(module)) for module in modules)


def _is_original_class(kind: type[torch.nn.Module]) -> bool:
    """Return whether class and forward method are from torch, transformers or this program."""
    return kind.__module__.startswith(_WRITTEN_BY) and kind.forward.__module__.startswith(_WRITTEN_BY)


def _is_patched(module: torch.nn.Module) -> bool:
    """Return whether a module has a foreign hook or patch.

    Hooks that transformers leaves after hidden states were requested are harmless: they only collect states during a
    pass of its own that requests them again. Those of adapters are part of the fused pass.
    """
    hooks = module._forward_hooks
    return bool(
        module._forward_pre_hooks
        or "forward" in vars(module)
        or (hooks and any(not _is_known_hook(hook) for hook in hooks.values()))
    )


def _is_known_hook(hook: object) -> bool:
    return isinstance(hook, LowRankPath) or getattr(hook, "__module__", "") == _CAPTURING


def _weights_fingerprint(modules: Iterable[torch.nn.Module]) -> tuple[int, ...]:
    """Fingerprint of the weights: changes when any weight is replaced or modified in place, or an adapter is attached
    or removed.
    """
    return tuple(
        number
        for module in modules
        for number in (*_parameter_numbers(module), *(path_serials(module) if module._forward_hooks else ()))
    )


def _parameter_numbers(module: torch.nn.Module) -> Iterator[int]:
    for p in module._parameters.values():
        if p is not None:
            yield p.data_ptr()
            yield 0 if p.is_inference() else p._version


def has_growing_layers(cache: object) -> bool:
    """Return whether every layer appends keys and values and returns those of the full text, or of sinks and recent
    tokens with positions counted among them: transformers' standard layers, and ours that declare `allows_fused_pass`.
    """
    return (
        isinstance(cache, (DynamicCache, StaticCache))
        and not cache.offloading
        and all(
            is_plain_dynamic_layer(layer) or (isinstance(layer, AdaptedLayer) and layer.allows_fused_pass)
            for layer in cache.layers
        )
    )


def _has_standard_layers(cache: object) -> bool:
    """Return whether all layers are transformers' standard ones, whose positions are those of the text."""
    return isinstance(cache, DynamicCache) and all(map(is_plain_dynamic_layer, cache.layers))


class _FusedPass(Protocol):
    def __call__(self, ids: torch.Tensor, cache: Cache, keep: int = 1) -> torch.Tensor: ...


_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 4e-2}
"""Tolerance for logits: the norm of the difference, relative to that of the module's logits."""
_TOLERANCE_QUANTIZED = 1e-3
"""The same where vectors are quantized to integers: one that rounds the other way changes a number by 3 · 10⁻⁵ of the
largest, which happens in every layer.
"""
_TIMES_OWN_DIFFERENCE = 2.0
"""Allowed multiple of the module's difference from itself, which exceeds the tolerance if the module amplifies rounding
errors: SmolLM2-135M in bfloat16 differs from itself by 1 to 3 %, and its fused pass by 1.5 to 3.5 %.
"""
_MAX_DIFFERENCE = 0.1
"""Difference that is never accepted."""
_NOISE = {torch.float32: 2.0**-22, torch.bfloat16: 2.0**-9}
"""Relative size of rounding errors."""
_CHECK_TEXTS = ("The quick brown fox jumps over the lazy dog.", "In 1969, people first walked on the Moon, and then")
"""Ordinary texts: special tokens, which never follow each other, make many models amplify rounding errors."""
_CHECK_TOKENS = 9
_MAX_CHECK_TOKENS = 64
"""Maximum number of tokens used to check a sliding window."""


@torch.no_grad()
def matches_module(fused: _FusedPass, model: LoadedModel) -> bool:
    """Return whether both give the same logits for ordinary texts, in one pass and in several.

    They are the same if they differ by the tolerance at most, or by as much as the module does from itself, when it
    reads the text in several passes or its embeddings are off by a rounding error.
    """
    network = model.model
    texts = _check_ids(model)
    expected = [network(ids, use_cache=False).logits.float() for ids in texts]
    if any(bool(torch.isnan(logits).any()) for logits in expected):
        return False
    found = [_in_parts(lambda part, cache: fused(part, cache, 0), ids) for ids in texts]
    difference = _relative_difference(found, expected)
    allowed = _TOLERANCE[network.dtype]
    if packed_bits(network.modules()) is not None:
        allowed = max(_TOLERANCE_QUANTIZED, allowed)
    if allowed < difference < _MAX_DIFFERENCE:
        allowed = max(allowed, _TIMES_OWN_DIFFERENCE * _own_difference(model, texts, expected))
    allowed = min(allowed, _MAX_DIFFERENCE)
    if difference > allowed:
        log.info(
            "the fused pass disagrees with %s by %.1e, more than %.1e; the module itself is used",
            type(network).__name__, difference, allowed,
        )  # fmt: skip
    return difference <= allowed


def _check_ids(model: LoadedModel) -> list[torch.Tensor]:
    """Return ids [1, n] of ordinary texts, longer than a sliding window; random ones for a model without tokenizer."""
    window = getattr(model.model.config, "sliding_window", None) or _MAX_CHECK_TOKENS
    count = _CHECK_TOKENS if window >= _MAX_CHECK_TOKENS else window + 5
    vocabulary = int(model.model.config.vocab_size)
    texts = [] if model.tokenizer is None else [_ordinary_ids(model.tokenizer, text) for text in _CHECK_TEXTS]
    generator = torch.Generator().manual_seed(0)
    found = []
    for number in range(len(_CHECK_TEXTS)):
        ids = torch.tensor(texts[number] if texts else [], dtype=torch.long)
        if len(ids) < 2:
            ids = torch.randint(vocabulary, (count,), generator=generator)
        found.append(ids.repeat(-(-count // len(ids)))[:count][None].to(model.device) % vocabulary)
    return found


def _ordinary_ids(tokenizer: Any, text: str) -> list[int]:
    try:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])
    except Exception:  # tokenizers of other libraries
        log.debug("the tokenizer cannot read the text for the check", exc_info=True)
        return []


def _in_parts(read: Callable[[torch.Tensor, DynamicCache], torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    """Return the logits of a text read as a prompt, a token, and a few tokens."""
    cache = DynamicCache()
    return torch.cat([read(part, cache).float() for part in ids.split([4, 1, ids.shape[1] - 5], 1)], 1)


def _own_difference(model: LoadedModel, texts: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """Return by how much a module differs from itself."""
    network: Any = model.model

    def read(part: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
        logits: torch.Tensor = network(part, use_cache=True, **{model.cache_name: cache}).logits
        return logits

    generator = torch.Generator(texts[0].device).manual_seed(0)

    def add_noise(_module: object, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(output.shape, generator=generator, device=output.device).to(output.dtype)
        return output * (1 + _NOISE[network.dtype] * noise)

    parts = [_in_parts(read, ids) for ids in texts]
    handle = network.get_input_embeddings().register_forward_hook(add_noise)
    try:
        noisy = [network(ids, use_cache=False).logits.float() for ids in texts]
    finally:
        handle.remove()
    return max(_relative_difference(parts, expected), _relative_difference(noisy, expected))


def _relative_difference(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """Return the norm of the difference of logits, relative to the norm of those expected, over all texts."""
    wrong = sum(_square_sum(one - other) for one, other in zip(found, expected, strict=True))
    return math.sqrt(wrong / max(sum(map(_square_sum, expected)), 1e-30))


def _square_sum(logits: torch.Tensor) -> float:
    return float(logits.to(widest_float(logits.device)).square().sum())
