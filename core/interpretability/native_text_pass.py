"""Run the layers of a Llama-type model over many tokens in native code.

In a small model the operations between matrix products take as long as the products, because their data has left the
processor's cache. This pass uses the same weights in the same order as the fused pass, and is checked against it before
use.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F
from transformers import DynamicCache

from decodescope.core.decoding.forward.fused_decoder import FusedDecoder
from decodescope.core.decoding.forward.fused_layers import NativeGatedMlp, NativeLinear, RootMeanSquare
from decodescope.core.decoding.forward.module_map import (
    LlamaLayer,
    LlamaWeights,
    UnsupportedArchitecture,
    llama_weights,
)
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.native import native_library
from decodescope.core.native.native_library import NativeLibrary, library
from decodescope.core.native.tensor_address import tensor_address

log = logging.getLogger(__name__)

_CACHE_KEY = "wide_pass"
_HEAD_MULTIPLE = 32
"""Head widths must be a multiple of this."""
_TOLERANCE = 1e-4
"""Maximum difference from the fused pass's states, relative to the largest."""

LayerKeysValues = tuple[torch.Tensor, torch.Tensor]
"""A layer's keys and values [1, heads, T, width] of a text that was read."""


class TextRemainder(NamedTuple):
    """The rest of a text whose first `prefix_length` tokens are shared with another."""

    prefix_length: int
    ids: Sequence[int]


class _NativeLayerWeights(NamedTuple):
    """The weights of one layer. The fused pass keeps the tensors that the norms point to alive."""

    norm: native_library.NormStruct
    qkv: NativeLinear
    q_norm: native_library.NormStruct
    k_norm: native_library.NormStruct
    out: NativeLinear
    norm_mlp: native_library.NormStruct
    gate_up: NativeGatedMlp
    down: NativeLinear


class NativeTextPass:
    """Runs texts after a shared prefix in native code."""

    def __init__(self, fused: FusedDecoder, weights: LlamaWeights, library: NativeLibrary) -> None:
        self._fused, self._weights, self._library = fused, weights, library
        self._layers = [_layer(layer, library) for layer in weights.layers]
        self._norm, self._head = _norm(weights.norm), NativeLinear(library, [(weights.head, None)])

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return len(self._weights.embed)

    def states(self, remainders: Sequence[TextRemainder], prefix: Sequence[LayerKeysValues] = ()) -> torch.Tensor:
        """Return the states between the layers, [L + 1, n, D], one text after another. Without `prefix`, no text shares
        one.
        """
        seats = _BatchLayout(remainders, prefix)
        embedded = self._embed(seats)
        found = embedded.new_empty(len(self._layers) + 1, *embedded.shape)
        found[0] = embedded
        for index in range(len(self._layers)):
            found[index + 1] = found[index]
            self._run_layer(index, found[index + 1], seats, False)
        return found

    def last_logits(self, remainders: Sequence[TextRemainder], prefix: Sequence[LayerKeysValues] = ()) -> torch.Tensor:
        """Return float32 logits [texts, V] after the last token of each text."""
        seats = _BatchLayout(remainders, prefix)
        hidden = self._embed(seats)
        last = len(self._layers) - 1
        for index in range(last):
            self._run_layer(index, hidden, seats, False)
        return self.logits(self._run_layer(last, hidden, seats, True))

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Return float32 logits [n, V] of states [n, D] from any layer."""
        return self._head(self._normed(states.contiguous(), self._norm))

    def _embed(self, layout: _BatchLayout) -> torch.Tensor:
        return F.embedding(layout.ids, self._weights.embed)

    def _run_layer(self, index: int, hidden: torch.Tensor, layout: _BatchLayout, last_only: bool) -> torch.Tensor:
        """Apply a layer to hidden [n, D] in place; with `last_only`, return new states for the last token of each
        text.
        """
        layer = self._layers[index]
        read = self._attend(index, self._project(index, hidden, layout), layout, last_only)
        if last_only:
            hidden = hidden[layout.ends]
        normed = self._normed(layer.out.add_to(hidden, read), layer.norm_mlp)
        return layer.down.add_to(hidden, layer.gate_up(normed))

    def _project(self, index: int, hidden: torch.Tensor, layout: _BatchLayout) -> torch.Tensor:
        """Return queries, keys and values of all tokens before rotary embedding.

        In the first layer they depend on the token alone, so repeated tokens are computed once.
        """
        layer = self._layers[index]
        if index or layout.unique_ids.numel() == layout.ids.numel():
            return layer.qkv(self._normed(hidden, layer.norm))
        embedded = F.embedding(layout.unique_ids, self._weights.embed)
        return F.embedding(layout.unique_index, layer.qkv(self._normed(embedded, layer.norm)))

    def _normed(self, hidden: torch.Tensor, norm: native_library.NormStruct) -> torch.Tensor:
        normed = torch.empty_like(hidden)
        self._library.norm(
            tensor_address(hidden, torch.float32), norm, hidden.shape, tensor_address(normed, torch.float32)
        )
        return normed

    def _attend(self, index: int, joined: torch.Tensor, layout: _BatchLayout, last_only: bool) -> torch.Tensor:
        """Return the attention output [n, heads · width] for the joined queries, keys and values of all tokens."""
        modules, layer = self._fused.modules, self._layers[index]
        cos, sin = self._fused.rotary_table(self._weights.rope, layout.max_length)
        read = joined.new_empty(len(layout.remainders) if last_only else len(joined), modules.heads * modules.width)
        keys, values, capacity = layout.prefix_addresses(index)
        self._library.ragged_attention(
            native_library.RaggedAttentionStruct(
                heads=modules.heads,
                kv_heads=modules.kv_heads,
                width=modules.width,
                scaling=modules.scaling,
                q_norm=layer.q_norm,
                k_norm=layer.k_norm,
                cos=tensor_address(cos, torch.float32),
                sin=tensor_address(sin, torch.float32, cos.numel()),
                texts=len(layout.remainders),
                last_only=int(last_only),
                threads=torch.get_num_threads(),
                capacity=capacity,
                prefix_lengths=ctypes.addressof(layout.prefix_lengths),
                counts=ctypes.addressof(layout.counts),
                keys=keys,
                values=values,
                joined=tensor_address(joined, torch.float32),
                read=tensor_address(read, torch.float32),
            )
        )
        return read


class _BatchLayout:
    """Positions and prefixes of the tokens of one pass."""

    def __init__(self, remainders: Sequence[TextRemainder], prefix: Sequence[LayerKeysValues]) -> None:
        self.remainders = remainders
        numbers = ctypes.c_int64 * len(remainders)
        self.prefix_lengths, self.counts = (
            numbers(*(rest.prefix_length for rest in remainders)),
            numbers(*(len(rest.ids) for rest in remainders)),
        )
        self.max_length = max(rest.prefix_length + len(rest.ids) for rest in remainders)
        self.ends = torch.tensor([len(rest.ids) for rest in remainders]).cumsum(0) - 1
        self.ids = torch.tensor([token for rest in remainders for token in rest.ids])
        self.unique_ids, self.unique_index = self.ids.unique(return_inverse=True)
        self._read = [(keys.contiguous(), values.contiguous()) for keys, values in prefix]

    def prefix_addresses(self, index: int) -> tuple[int | None, int | None, int]:
        """Return the addresses of a layer's keys and values, and the number of tokens from one head to the next."""
        if not self._read:
            return None, None, 0
        keys, values = self._read[index]
        return tensor_address(keys, torch.float32), tensor_address(values, torch.float32, keys.numel()), keys.shape[2]


def _layer(layer: LlamaLayer, library: NativeLibrary) -> _NativeLayerWeights:
    gate, up = layer.gate_up if len(layer.gate_up) > 1 else layer.gate_up[0].chunk(2)
    return _NativeLayerWeights(
        norm=_norm(layer.norm), q_norm=_norm(layer.q_norm), k_norm=_norm(layer.k_norm), norm_mlp=_norm(layer.norm_mlp),
        qkv=NativeLinear(library, layer.project), out=NativeLinear(library, [layer.out]),
        gate_up=NativeGatedMlp(library, gate, up), down=NativeLinear(library, [(layer.down, None)]),
    )  # fmt: skip


def _norm(norm: RootMeanSquare | None) -> native_library.NormStruct:
    if norm is None:
        return native_library.NormStruct()
    return native_library.NormStruct(
        native_library.NORMS["root_mean_square"], tensor_address(norm.weight, torch.float32), None, norm.eps
    )  # fmt: skip


def native_text_pass(model: LoadedModel, fused: FusedDecoder) -> NativeTextPass | None:
    """Return the native pass of a model with the fused pass `fused`, if it is built and agrees with it; cached."""
    found = library()
    if found is None or fused.modules.width % _HEAD_MULTIPLE:
        return None
    tried: tuple[FusedDecoder, NativeTextPass | None] | None = model.strategy_data.get(_CACHE_KEY)
    if tried is None or tried[0] is not fused:
        model.strategy_data[_CACHE_KEY] = tried = fused, _build_text_pass(fused, found)
    return tried[1]


def _build_text_pass(fused: FusedDecoder, found: NativeLibrary) -> NativeTextPass | None:
    try:
        made = NativeTextPass(fused, llama_weights(fused.modules), found)
    except UnsupportedArchitecture as error:
        log.debug("no native text pass: %s", error)
        return None
    return made if _matches_fused(made, fused) else None


@torch.inference_mode()
def _matches_fused(native: NativeTextPass, fused: FusedDecoder) -> bool:
    """Return whether both passes give the same states, and the same logits after shared prefixes."""
    cache: Any = DynamicCache()
    ids = [token % native.vocabulary for token in range(1, 9)]
    expected = fused.layer_states(torch.tensor([ids]), cache)[:, 0]
    prefix_states = [(layer.keys, layer.values) for layer in cache.layers]
    near = _is_close(native.states([TextRemainder(0, ids)]), expected)
    both = native.last_logits([TextRemainder(5, ids[5:]), TextRemainder(0, ids[:7])], prefix_states)
    if near and _is_close(both, fused.logits(expected[-1])[[-1, -2]]):
        return True
    log.info("the native text pass disagrees with the fused pass, which is used")
    return False


def _is_close(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool((actual - expected).abs().max() <= _TOLERANCE * expected.abs().max().clamp(min=1.0))
