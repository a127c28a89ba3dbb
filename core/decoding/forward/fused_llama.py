"""Fused forward pass for Llama-like models: the same numbers with a third of the Python overhead.

With a few million weights most of a token's time is spent in module calls, not arithmetic. This pass reads the module's
own weights (in small models query, key and value as one matrix, gate and up as another) and does the same operations in
the same order. It is used for unhooked, unpatched float32 modules of exactly the listed classes, after a check that its
output matches the module's; everything else goes through the module.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import torch
from torch import nn
from torch.nn import functional as F
from transformers import DynamicCache, LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM
from transformers.cache_utils import Cache, StaticCache

from core.caches.tensors.adapted_layer import AdaptedLayer as CacheLayer
from core.caches.tensors.dynamic_layers import is_plain_dynamic_layer
from core.caches.tensors.static_layers import is_compiled
from core.decoding.forward.fused_layers import linear
from core.decoding.forward.module_map import FIXED_ROPES
from core.models.loaded_model import LoadedModel
from core.models.quantized.packed_layers import packed_bits


class LlamaAttention(Protocol):
    """Four linear maps; some architectures also normalize queries and keys (`q_norm`, `k_norm`)."""

    q_proj: nn.Linear
    k_proj: nn.Linear
    v_proj: nn.Linear
    o_proj: nn.Linear


class LlamaMlp(Protocol):
    """Two maps up, one down, with an activation in between."""

    gate_proj: nn.Linear
    up_proj: nn.Linear
    down_proj: nn.Linear
    act_fn: Callable[[torch.Tensor], torch.Tensor]


class LlamaNorm(Protocol):
    """RMS norm."""

    weight: torch.Tensor


class LlamaLayer(Protocol):
    """One decoder layer."""

    input_layernorm: LlamaNorm
    self_attn: LlamaAttention
    post_attention_layernorm: LlamaNorm
    mlp: LlamaMlp


class LlamaHead(Protocol):
    """Output head: from hidden states to logits."""

    weight: torch.Tensor
    bias: torch.Tensor | None


class LlamaBackbone(Protocol):
    """The model without its output head."""

    embed_tokens: nn.Embedding
    layers: Iterable[LlamaLayer]
    norm: LlamaNorm
    rotary_emb: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


class LlamaShape(Protocol):
    """The configuration fields that are read."""

    rms_norm_eps: float
    hidden_size: int
    hidden_act: str
    num_attention_heads: int
    num_key_value_heads: int
    rope_parameters: Mapping[str, object]
    _attn_implementation: str


class LlamaModule(Protocol):
    """The complete module."""

    config: LlamaShape
    model: LlamaBackbone
    lm_head: LlamaHead
    dtype: torch.dtype
    training: bool
    forward: Callable[..., object]

    def parameters(self) -> Iterator[nn.Parameter]:
        """Return all weights."""

    def modules(self) -> Iterator[nn.Module]:
        """Return the module itself and all submodules."""


log = logging.getLogger(__name__)

_CLASSES = (LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)
_FORWARDS: dict[type, object] = {cls: cls.forward for cls in _CLASSES}
_WINDOWED: tuple[type, ...] = (MistralForCausalLM,)
"""Classes whose layers all use a window if the configuration has one."""
_WRITTEN_BY = ("transformers.", "torch.nn.", "core.models.quantized.")
_CAPTURING = "transformers.utils.output_capturing"
MAX_JOINED_BYTES = 256 * 2**20
"""Maximum bytes of weights for which the joined matrices (a copy) are worth their memory."""


class _HasParameters(Protocol):
    def parameters(self) -> Iterator[torch.nn.Parameter]: ...


@dataclass(frozen=True, slots=True)
class JoinedLinear:
    """Linear maps of one input: one joined matrix where the copy is worth its memory, else the module's own ones."""

    weights: tuple[torch.Tensor, ...]
    biases: tuple[torch.Tensor | None, ...]

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return all outputs concatenated, [.., sum of their widths]."""
        if len(self.weights) == 1:
            return linear(hidden, self.weights[0], self.biases[0])
        return torch.cat([linear(hidden, *pair) for pair in zip(self.weights, self.biases, strict=True)], -1)

    @staticmethod
    def of(parts: Sequence[torch.nn.Linear], copies: bool) -> JoinedLinear:
        """Build the maps of these modules."""
        weights = [part.weight for part in parts]
        biases: list[torch.Tensor | None] = [part.bias for part in parts]
        if not copies:
            return JoinedLinear(tuple(weights), tuple(biases))
        bias = torch.cat([part.bias for part in parts]) if biases[0] is not None else None
        return JoinedLinear((torch.cat(weights),), (bias,))


@dataclass(frozen=True, slots=True)
class FusedLayerWeights:
    """Weights of one layer."""

    norm_in: torch.Tensor
    qkv: JoinedLinear
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    out: torch.Tensor
    out_bias: torch.Tensor | None
    norm_mlp: torch.Tensor
    gate_up: JoinedLinear
    down: torch.Tensor


class FusedLlama:
    """Fused Llama: `__call__(ids [B, n], cache)` returns logits [B, keep, V] like the module, and extends the cache."""

    def __init__(self, network: LlamaModule) -> None:
        self._network = network
        self._fingerprint = weights_fingerprint(network.modules())
        config = network.config
        self.eps = config.rms_norm_eps
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.is_grouped = self.heads != self.kv_heads
        """Whether several query heads share a key–value head."""
        self.width = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.embed, self.norm = network.model.embed_tokens.weight, network.model.norm.weight
        self.head = network.lm_head.weight
        copies = weight_bytes(network) <= MAX_JOINED_BYTES
        self.layers = [_join_layer(layer, copies) for layer in network.model.layers]
        self._act = next(iter(network.model.layers)).mlp.act_fn
        self.is_silu = network.config.hidden_act in ("silu", "swish")
        self._cos, self._sin = self._compute_tables(512)

    def is_current(self) -> bool:
        """Whether the module's weights, forward methods and hooks are unchanged since this was built."""
        return self._fingerprint == weights_fingerprint(self._network.modules()) and is_unmodified_llama(self._network)

    def __call__(
        self, ids: torch.Tensor, cache: Cache, keep: int = 1, mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return logits. `mask`: additive [.., n, P + n], default causal; `positions` [n] or [1, n], default following
        the cache.
        """
        embedded = F.embedding(ids, self.embed)
        (hidden,) = deque(self._run_layers(embedded, cache, keep, mask, positions), maxlen=1)
        return self.logits(hidden)

    def layer_states(self, ids: torch.Tensor, cache: Cache) -> torch.Tensor:
        """Return the hidden states [L + 1, B, n, D]: the embedding output, then each layer's output."""
        embedded = F.embedding(ids, self.embed)
        return torch.stack([embedded, *self._run_layers(embedded, cache, 0, None, None)])

    def _run_layers(
        self, hidden: torch.Tensor, cache: Cache, keep: int, mask: torch.Tensor | None, positions: torch.Tensor | None
    ) -> Iterator[torch.Tensor]:
        """Yield each layer's output, [B, n, D]; the last layer only for the last `keep` positions (all with 0)."""
        past, count = int(cache.get_seq_length()), hidden.shape[1]
        cos, sin = self._rotation(past, count, positions)
        causal = mask is None and count > 1 and past == 0
        if mask is None and count > 1 and past:
            mask = _causal_mask(past, count, hidden.device)
        last = len(self.layers) - 1
        for index, layer in enumerate(self.layers):
            places = keep if index == last and keep < count else 0
            if places:  # after the last layer only these are needed
                mask, causal = _last_mask_rows(mask, past, count, places, hidden.device), False
            read = self._attend(layer, index, hidden, cos, sin, cache, mask, causal, past + count, places)
            hidden = (hidden[:, -places:] if places else hidden) + read
            hidden = hidden + self.mlp(layer, hidden)
            yield hidden

    def _attend(
        self,
        layer: FusedLayerWeights,
        index: int,
        hidden: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        cache: Cache,
        mask: torch.Tensor | None,
        causal: bool,
        total: int,
        keep_last: int,
    ) -> torch.Tensor:
        """Return the attention output of the last `keep_last` tokens, all with 0."""
        queries, new_keys, new_values = self.project(layer, hidden, cos, sin)
        if keep_last:
            queries = queries[:, :, -keep_last:]
        keys, values = cache.update(new_keys, new_values, index)
        if keys.shape[-2] > total:  # a cache of fixed size: positions after the text are empty
            keys, values = keys[:, :, :total], values[:, :, :total]
        read = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, is_causal=causal, enable_gqa=self.is_grouped
        )
        return self.merge_heads(layer, read)

    def project(
        self, layer: FusedLayerWeights, hidden: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries, keys and values of the new tokens, [B, heads, n, width], rotary embeddings applied to the
        first two.
        """
        batch, count, _ = hidden.shape
        normed = F.rms_norm(hidden, layer.norm_in.shape, layer.norm_in, self.eps)
        joined = layer.qkv(normed).view(batch, count, -1, self.width).transpose(1, 2)
        turned = joined[:, : self.heads + self.kv_heads]
        if layer.q_norm is not None and layer.k_norm is not None:
            turned = self._norm_heads(turned, layer.q_norm, layer.k_norm)
        # rotate_half(x) · sin equals x with its halves swapped, times sin with its first half negated.
        turned = torch.addcmul(turned * cos, turned.roll(self.width // 2, -1), sin)
        return turned[:, : self.heads], turned[:, self.heads :], joined[:, self.heads + self.kv_heads :]

    def merge_heads(self, layer: FusedLayerWeights, attended: torch.Tensor) -> torch.Tensor:
        """Combine the attention output of the heads [B, heads, n, width] into [B, n, D]."""
        batch, _, count, _ = attended.shape
        return linear(attended.transpose(1, 2).reshape(batch, count, -1), layer.out, layer.out_bias)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return logits [B, n, V] of the last layer's output."""
        return linear(F.rms_norm(hidden, self.norm.shape, self.norm, self.eps), self.head)

    def _norm_heads(self, head_states: torch.Tensor, q_norm: torch.Tensor, k_norm: torch.Tensor) -> torch.Tensor:
        queries = F.rms_norm(head_states[:, : self.heads], q_norm.shape, q_norm, self.eps)
        keys = F.rms_norm(head_states[:, self.heads :], k_norm.shape, k_norm, self.eps)
        return torch.cat([queries, keys], dim=1)

    def mlp(self, layer: FusedLayerWeights, hidden: torch.Tensor) -> torch.Tensor:
        """The MLP of a layer."""
        normed = F.rms_norm(hidden, layer.norm_mlp.shape, layer.norm_mlp, self.eps)
        gate, up = layer.gate_up(normed).chunk(2, -1)
        return linear(self._act(gate) * up, layer.down)

    def _rotation(
        self, past: int, count: int, positions: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """Return cos and signed sin, [n, head width], at the positions of this pass."""
        if positions is not None:
            index = positions.reshape(-1)
            self._extend_tables(int(index.max()) + 1)
            return self._cos[index], self._sin[index]
        self._extend_tables(past + count)
        return self._cos[past : past + count], self._sin[past : past + count]

    def rotary_tables(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return cos and signed sin of at least the first `length` positions, [.., head width]."""
        self._extend_tables(length)
        return self._cos, self._sin

    def _extend_tables(self, length: int) -> None:
        if length > self._cos.shape[0]:
            self._cos, self._sin = self._compute_tables(2 * length)

    def _compute_tables(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        positions = torch.arange(length, device=self.embed.device)[None]
        cos, sin = self._network.model.rotary_emb(self.embed, positions)
        half = self.width // 2
        return cos[0].clone(), torch.cat([-sin[0, :, :half], sin[0, :, half:]], dim=-1)


def _join_layer(layer: LlamaLayer, copies: bool) -> FusedLayerWeights:
    attention, mlp = layer.self_attn, layer.mlp
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    q_norm, k_norm = getattr(attention, "q_norm", None), getattr(attention, "k_norm", None)
    return FusedLayerWeights(
        norm_in=layer.input_layernorm.weight,
        qkv=JoinedLinear.of(parts, copies),
        q_norm=q_norm.weight if q_norm is not None else None,
        k_norm=k_norm.weight if k_norm is not None else None,
        out=attention.o_proj.weight,
        out_bias=attention.o_proj.bias,
        norm_mlp=layer.post_attention_layernorm.weight,
        gate_up=JoinedLinear.of((mlp.gate_proj, mlp.up_proj), copies),
        down=mlp.down_proj.weight,
    )


def _causal_mask(past: int, count: int, device: torch.device) -> torch.Tensor:
    """Return the additive mask [n, P + n]: every position attends to the past, itself and those before it."""
    mask = torch.full((count, past + count), torch.finfo(torch.float32).min, device=device)
    return mask.triu_(past + 1)


def _last_mask_rows(
    mask: torch.Tensor | None, past: int, count: int, keep: int, device: torch.device
) -> torch.Tensor | None:
    """Return the mask rows of the last `keep` of `count` tokens; None where the very last one attends to everything."""
    if mask is None and keep > 1:
        mask = _causal_mask(past, count, device)
    return None if mask is None else mask[..., -keep:, :]


def is_unmodified_llama(network: torch.nn.Module | LlamaModule) -> TypeGuard[LlamaModule]:
    """Whether the network is exactly one of the known classes, without a replaced forward method or foreign hooks."""
    return (
        _is_known_class(network) and not network.training and not any(_is_patched(part) for part in network.modules())
    )


def _is_known_class(network: torch.nn.Module | LlamaModule) -> TypeGuard[LlamaModule]:
    return type(network).forward is _FORWARDS.get(type(network))


def is_unmodified(modules: Iterable[torch.nn.Module]) -> bool:
    """Whether every module has an original class and forward method (torch, transformers or this program) and no
    hooks.
    """
    return not any(_is_patched(module) or not _is_original_class(type(module)) for module in modules)


def _is_original_class(kind: type[torch.nn.Module]) -> bool:
    """Whether class and forward method are from torch, transformers or this program."""
    return kind.__module__.startswith(_WRITTEN_BY) and kind.forward.__module__.startswith(_WRITTEN_BY)


def _is_patched(module: torch.nn.Module) -> bool:
    """Whether a module has a foreign hook or patch.

    Hooks that transformers leaves after hidden states were requested are harmless: they only collect states during a
    pass of its own that requests them again.
    """
    hooks = module._forward_hooks
    return bool(
        module._forward_pre_hooks
        or "forward" in vars(module)
        or (hooks and any(getattr(hook, "__module__", "") != _CAPTURING for hook in hooks.values()))
    )


def weight_bytes(network: _HasParameters) -> int:
    return sum(p.numel() * p.element_size() for p in network.parameters())


def _is_supported(network: LlamaModule) -> bool:
    config = network.config
    biased_mlp = getattr(config, "mlp_bias", False)
    windowed = "sliding_attention" in (getattr(config, "layer_types", None) or ()) or (
        type(network) in _WINDOWED and getattr(config, "sliding_window", None)
    )
    return (
        getattr(network.lm_head, "bits", None) is None  # the cheapest check for quantized layers comes first
        and packed_bits(network.modules()) is None
        and network.dtype == torch.float32 and not biased_mlp and not windowed
        and config.rope_parameters["rope_type"] in FIXED_ROPES and network.lm_head.bias is None
        and config._attn_implementation == "sdpa"
    )  # fmt: skip


def weights_fingerprint(modules: Iterable[torch.nn.Module]) -> tuple[int, ...]:
    """Fingerprint of the weights: changes when any weight is replaced or modified in place."""
    return tuple(
        number
        for module in modules
        for p in module._parameters.values()
        if p is not None
        for number in (p.data_ptr(), 0 if p.is_inference() else p._version)
    )


def has_growing_layers(cache: object) -> bool:
    """Whether every layer appends keys and values and returns those of the full text, or of sinks and recent tokens
    with positions counted among them: transformers' standard layers, and ours that declare `is_lean`.
    """
    return (
        isinstance(cache, (DynamicCache, StaticCache))
        and not cache.offloading
        and not is_compiled(cache)
        and all(
            is_plain_dynamic_layer(layer) or (isinstance(layer, CacheLayer) and layer.allows_fused_pass)
            for layer in cache.layers
        )
    )


def get_fused_llama(model: LoadedModel) -> FusedLlama | None:
    """Return the fused pass of a Llama-like model; built once, checked against the module, rebuilt when weights
    change.
    """
    network = model.model
    known: FusedLlama | None = model.strategy_data.get("lean")
    if known is not None and known.is_current():
        return known
    model.strategy_data["lean"] = None
    if _is_known_class(network) and _is_supported(network) and is_unmodified_llama(network):
        lean = FusedLlama(network)
        model.strategy_data["lean"] = lean if matches_module(lean, model) else None
    found: FusedLlama | None = model.strategy_data["lean"]
    return found


class _FusedPass(Protocol):
    def __call__(self, ids: torch.Tensor, cache: Cache, keep: int = 1) -> torch.Tensor: ...


_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 4e-2}
"""Tolerance for logits, relative to the largest."""
_TOLERANCE_QUANTIZED = 1e-3
"""The same where vectors are quantized to integers: one that rounds the other way is off by 3 · 10⁻⁵ of the largest,
which happens in every layer.
"""
_MAX_CHECK_TOKENS = 64
"""Maximum number of tokens used to check a sliding window."""


def matches_module(fused: _FusedPass, model: LoadedModel) -> bool:
    """Whether both give the same logits for a few tokens, in one pass and one by one."""
    network = model.model
    window = getattr(network.config, "sliding_window", None) or _MAX_CHECK_TOKENS
    count = 7 if window >= _MAX_CHECK_TOKENS else window + 5
    ids = torch.arange(1, count + 1, device=network.device)[None] % network.config.vocab_size
    expected = network(ids, use_cache=False).logits.float()
    cache = DynamicCache()
    parts = [fused(part, cache, 0) for part in ids.split([4, 1, count - 5], 1)]
    scale = expected.abs().max().clamp(min=1.0)
    near = (
        _TOLERANCE[network.dtype]
        if packed_bits(network.modules()) is None
        else max(_TOLERANCE_QUANTIZED, _TOLERANCE[network.dtype])
    )
    close = bool(((torch.cat(parts, dim=1) - expected).abs().max() / scale) < near)
    if not close and not bool(torch.isnan(expected).any()):
        log.info("the lean pass disagrees with %s; the module itself is used", type(network).__name__)
    return close
