"""Draft model passes on NumPy arrays, for models so small that torch calls cost more than their arithmetic, on
computers without native code.

At half a million weights a pass is some sixty operations of a few microseconds; NumPy's calls take about a third of
torch's. Tokens are read one by one, because a product of a matrix with few rows would first copy the matrix. Drafts
need no exact rounding: every verifier uses the very distribution that the token was drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import overload

import numpy as np
import numpy.typing as npt
import torch
from transformers import DynamicCache

from decodescope.core.caches.tensors.cache_operations import adapted_layers
from decodescope.core.decoding.forward.fused_decoder import FusedDecoder, get_fused_decoder
from decodescope.core.decoding.forward.fused_layers import join_weights
from decodescope.core.decoding.forward.module_map import (
    LlamaLayer,
    LlamaWeights,
    UnsupportedArchitecture,
    llama_weights,
)
from decodescope.core.decoding.forward.native_step import get_native_step
from decodescope.core.models.loaded_model import LoadedModel

Array = npt.NDArray[np.float32]

MAX_WEIGHT_BYTES = 8 * 2**20
"""Maximum bytes of weights for which call overhead dominates arithmetic."""
_MAX_SINGLE_TOKENS = 8
"""Maximum number of text tokens read one by one; more (a prompt, or text after a pause) are read by the fused pass at
once.
"""
_INITIAL_CAPACITY = 256


@dataclass(frozen=True, slots=True)
class _NumpyLayer:
    """One layer's weights; norm weights are multiplied into the matrices after them."""

    qkv: Array
    bias: Array | None
    q_norm: Array | None
    k_norm: Array | None
    out: Array
    out_bias: Array | None
    gate_up: Array
    down: Array


class NumpyWeights:
    """The weights of a fused pass as arrays."""

    def __init__(self, fused: FusedDecoder, weights: LlamaWeights) -> None:
        self.fused, self.rope, self.eps = fused, weights.rope, weights.norm.eps
        self.layers = [_layer(layer) for layer in weights.layers]
        self.embed = _array(weights.embed)
        self.head: Array = _array(weights.head) * _array(weights.norm.weight)
        self._rotations = self._rotary_tables(_INITIAL_CAPACITY)

    def rotation(self, position: int) -> tuple[Array, Array]:
        """Return cos and signed sin at a position, both [2, half a head]."""
        if position >= len(self._rotations[0]):
            self._rotations = self._rotary_tables(2 * position)
        return self._rotations[0][position], self._rotations[1][position]

    def _rotary_tables(self, length: int) -> tuple[Array, Array]:
        cos, sin = (_array(part).reshape(len(part), 2, -1) for part in self.fused.rotary_table(self.rope, length))
        return cos, sin


class NumpyDraftModel:
    """`TreePasses` of a small Llama-like draft model: `length` settled text tokens, followed by `extra` node rows."""

    def __init__(self, weights: NumpyWeights) -> None:
        self.weights, modules = weights, weights.fused.modules
        self._heads, self._kv_heads, self._width = modules.heads, modules.kv_heads, modules.width
        self._eps, self._scale = weights.eps, np.float32(modules.scaling)
        self.length = 0
        self.extra = 0
        shape = (len(weights.layers), modules.kv_heads, _INITIAL_CAPACITY, modules.width)
        self._keys, self._values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    # -- called by the drafter

    def read_text(self, ids: torch.Tensor) -> torch.Tensor:
        """Read text tokens [1, n] permanently; return logits [1, V] after the last one."""
        if ids.shape[1] > _MAX_SINGLE_TOKENS:
            return self._read_with_fused_pass(ids)
        tokens: list[int] = ids[0].tolist()
        for token in tokens[:-1]:
            self._step(token, self.length, None)
            self.length += 1
        logits = self._logits(self._step(tokens[-1], self.length, None))
        self.length += 1
        return torch.from_numpy(logits[None])

    def read_nodes(self, ids: torch.Tensor, depths: Sequence[int], visibility: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Read nodes [1, n] after the text; return logits [n, V]. `depths` and `visibility` [n, extra + n] as in
        `TreePasses`.
        """
        rows = []
        for token, depth, seen in zip(ids[0].tolist(), depths, visibility, strict=True):
            own = seen[: self.extra + 1]
            rows.append(self._logits(self._step(token, self.length + depth, None if own.all() else self._mask(own))))
            self.extra += 1
        return torch.from_numpy(np.stack(rows) if len(rows) > 1 else rows[0][None])

    def commit(self, rows: Sequence[int]) -> None:
        """Move these node rows, in this order, to the text and drop the others."""
        if list(rows) != list(range(len(rows))):
            accepted_rows = self.length + np.asarray(rows)
            end = self.length + len(rows)
            self._keys[:, :, self.length : end] = self._keys[:, :, accepted_rows]
            self._values[:, :, self.length : end] = self._values[:, :, accepted_rows]
        self.length, self.extra = self.length + len(rows), 0

    def crop(self, length: int) -> None:
        """Drop all nodes and every text token after the first `length`."""
        self.length, self.extra = min(self.length, length), 0

    # -- one token

    def _step(self, token: int, position: int, mask: Array | None) -> Array:
        """Return the last layer's output [D]; append keys and values to the cache."""
        row = self.length + self.extra
        self._ensure_capacity(row + 1)
        turn, hidden = self.weights.rotation(position), self.weights.embed[token]
        with np.errstate(over="ignore"):  # exp overflows to infinity in silu, whose limit is then correct
            for index, layer in enumerate(self.weights.layers):
                hidden = self._layer(layer, index, hidden, turn, row, mask)
        last: Array = hidden
        return last

    def _layer(
        self, layer: _NumpyLayer, index: int, hidden: Array, turn: tuple[Array, Array], row: int, mask: Array | None
    ) -> Array:
        joined = layer.qkv.dot(self._rms_norm(hidden))
        if layer.bias is not None:
            joined += layer.bias
        read = layer.out.dot(self._attend(self._store(layer, joined, index, turn, row), index, row + 1, mask))
        hidden = hidden + (read if layer.out_bias is None else read + layer.out_bias)
        both = layer.gate_up.dot(self._rms_norm(hidden))
        inner = len(both) // 2
        gate = both[:inner]
        grown: Array = hidden + layer.down.dot(gate / (1 + np.exp(-gate)) * both[inner:])
        return grown

    def _store(self, layer: _NumpyLayer, joined: Array, index: int, turn: tuple[Array, Array], row: int) -> Array:
        """Store key and value, with the rotary embedding applied to the key; return the rotated queries [heads,
        width].
        """
        both, (cos, sin) = self._heads + self._kv_heads, turn
        parts = joined.reshape(-1, 2, self._width // 2)
        turned = parts[:both]
        if layer.q_norm is not None and layer.k_norm is not None:
            turned = np.concatenate((
                self._norm_heads(turned[: self._heads], layer.q_norm),
                self._norm_heads(turned[self._heads :], layer.k_norm),
            ))  # fmt: skip
        turned = (turned * cos + turned[:, ::-1] * sin).reshape(both, self._width)
        self._keys[index, :, row] = turned[self._heads :]
        self._values[index, :, row] = parts[both:].reshape(-1, self._width)
        return turned[: self._heads]

    def _attend(self, queries: Array, index: int, end: int, mask: Array | None) -> Array:
        """Return the attention output, [heads · width]. Query heads that share a key–value head are rows of one
        product.
        """
        keys, values = self._keys[index, :, :end], self._values[index, :, :end]
        scaled = queries.reshape(self._kv_heads, -1, self._width) * self._scale
        scores = scaled @ keys.swapaxes(1, 2)
        if mask is not None:
            scores += mask
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        read: Array = (shares @ values / shares.sum(-1, keepdims=True)).reshape(-1)
        return read

    def _rms_norm(self, hidden: Array) -> Array:
        """Apply RMS norm without its weight."""
        normed: Array = hidden * np.float32(1 / sqrt(float(hidden.dot(hidden)) / len(hidden) + self._eps))
        return normed

    def _norm_heads(self, heads: Array, weight: Array) -> Array:
        """Apply RMS norm to every head [n, 2, half], with its weight."""
        mean = np.mean(np.square(heads), axis=(1, 2), keepdims=True)
        normed: Array = heads / np.sqrt(mean + np.float32(self._eps)) * weight
        return normed

    def _logits(self, hidden: Array) -> Array:
        """Return logits [V]."""
        logits: Array = self.weights.head.dot(self._rms_norm(hidden))
        return logits

    def _mask(self, visibility: npt.NDArray[np.bool_]) -> Array:
        """Return the additive mask [length + rows]; all of the text is visible."""
        mask = np.zeros(self.length + len(visibility), np.float32)
        mask[self.length :][~visibility] = -np.inf
        return mask

    def _read_with_fused_pass(self, ids: torch.Tensor) -> torch.Tensor:
        """Read many tokens with the fused pass, because there arithmetic dominates call overhead."""
        cache = DynamicCache()
        begin, end = self.length, self.length + ids.shape[1]
        if begin:
            for index, (keys, values) in enumerate(zip(self._keys, self._values, strict=True)):
                cache.update(torch.from_numpy(keys[None, :, :begin]), torch.from_numpy(values[None, :, :begin]), index)
        logits = self.weights.fused(ids, cache)
        self._ensure_capacity(end)
        for index, layer in enumerate(adapted_layers(cache)):
            new_keys, new_values = layer.states()
            self._keys[index, :, begin:end] = _array(new_keys[0, :, begin:])
            self._values[index, :, begin:end] = _array(new_values[0, :, begin:])
        self.length = end
        return logits[:, -1]

    def _ensure_capacity(self, needed: int) -> None:
        room = self._keys.shape[2]
        if needed > room:
            more = ((0, 0), (0, 0), (0, max(room, needed - room)), (0, 0))
            self._keys, self._values = np.pad(self._keys, more), np.pad(self._values, more)


def build_numpy_draft_model(model: LoadedModel) -> NumpyDraftModel | None:
    """Return passes for a small Llama-like CPU model with a fused pass; None for any other, and where the native step
    runs, which is faster.
    """
    fused = get_fused_decoder(model)
    if fused is None or model.weight_bytes > MAX_WEIGHT_BYTES or get_native_step(model, DynamicCache(), fused):
        return None
    known: NumpyWeights | None = model.strategy_data.get("arrays")
    if known is None or known.fused is not fused:
        try:
            model.strategy_data["arrays"] = known = NumpyWeights(fused, llama_weights(fused.modules))
        except UnsupportedArchitecture:
            return None
    return NumpyDraftModel(known)


def _layer(layer: LlamaLayer) -> _NumpyLayer:
    q_norm, k_norm = (
        None if norm is None else _array(norm.weight).reshape(2, -1) for norm in (layer.q_norm, layer.k_norm)
    )  # fmt: skip
    (qkv, qkv_bias), (out, out_bias) = join_weights(layer.project), layer.out
    gate_up, _ = join_weights([(part, None) for part in layer.gate_up])
    return _NumpyLayer(
        _array(qkv) * _array(layer.norm.weight), _array(qkv_bias), q_norm, k_norm, _array(out), _array(out_bias),
        _array(gate_up) * _array(layer.norm_mlp.weight), _array(layer.down),
    )  # fmt: skip


@overload
def _array(tensor: torch.Tensor) -> Array: ...
@overload
def _array(tensor: torch.Tensor | None) -> Array | None: ...
def _array(tensor: torch.Tensor | None) -> Array | None:
    """Return an array that shares the tensor's memory."""
    return None if tensor is None else tensor.detach().numpy()
