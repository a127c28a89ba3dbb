"""A draft model's passes on NumPy arrays, for models so small that calling tensor operations costs more than they do.

At half a million weights a pass is some sixty operations of a few microseconds; NumPy's calls take about a third of
torch's. The weights are the lean pass's own memory. A draft needs no particular rounding: every verifier compares with
the very distribution the token was drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import DynamicCache

from core.decoding.lean import LeanLlama, lean_pass
from core.model import LoadedModel

Array = npt.NDArray[np.float32]

LARGEST = 8 * 2**20
"""Bytes of weights up to which the calls, not the arithmetic, take the time."""
_FEW = 16
"""Rows read at once. A product with few rows goes row by row: a matrix product would first copy all the weights."""
_FIRST_ROOM = 256


class ArrayPasses:
    """`Passes` of a small Llama-like draft model: `length` text tokens are settled, `extra` node rows stand behind."""

    def __init__(self, lean: LeanLlama) -> None:
        self._lean = lean
        self._layers = [tuple(_array(getattr(layer, item.name)) for item in fields(layer)) for layer in lean.layers]
        self._embed, self._norm = _array(lean.embed), _array(lean.norm)
        self._head = _array(lean.head)
        self._eps, self._scale = np.float32(lean.eps), np.float32(lean.width**-0.5)
        self._cos, self._sin = map(_array, lean.angles(_FIRST_ROOM))
        self.length = 0
        self.extra = 0
        shape = (len(self._layers), lean.kv_heads, _FIRST_ROOM, lean.width)
        self._keys, self._values = np.zeros(shape, np.float32), np.zeros(shape, np.float32)

    # -- what a drafter calls

    def text(self, ids: torch.Tensor) -> torch.Tensor:
        """Read text tokens [1, n] for good; logits [1, V] behind the last one."""
        if not self.length and ids.shape[1] > _FEW:
            return self._read_prompt(ids)
        tokens = ids[0].numpy()
        hidden = np.zeros((0, 0), np.float32)
        for start in range(0, len(tokens), _FEW):
            part = tokens[start : start + _FEW]
            mask = None if len(part) == 1 else _causal(self.length, len(part))
            hidden = self._read(part, np.arange(self.length, self.length + len(part)), mask)
            self.length += len(part)
        return torch.from_numpy(self._score(hidden[-1:]))

    def nodes(self, ids: torch.Tensor, depths: Sequence[int], sees: npt.NDArray[np.bool_]) -> torch.Tensor:
        """Read nodes [1, n] behind the text; logits [n, V]. `depths` and `sees` [n, extra + n] as in `Passes`."""
        tokens = ids[0].numpy()
        if len(tokens) == 1 and sees.all():
            mask = None
        else:
            mask = np.zeros((len(tokens), self.length + sees.shape[1]), np.float32)
            mask[:, self.length :][~sees] = -np.inf
        places = self.length + np.asarray(depths)
        hidden = self._read(tokens, places, mask)
        self.extra += len(tokens)
        return torch.from_numpy(self._score(hidden))

    def settle(self, rows: Sequence[int]) -> None:
        """Make these node rows, in this order, part of the text and forget the others."""
        if list(rows) != list(range(len(rows))):
            kept = self.length + np.asarray(rows)
            end = self.length + len(rows)
            self._keys[:, :, self.length : end] = self._keys[:, :, kept]
            self._values[:, :, self.length : end] = self._values[:, :, kept]
        self.length, self.extra = self.length + len(rows), 0

    def crop(self, length: int) -> None:
        """Forget all nodes and every text token behind the first `length`."""
        self.length, self.extra = min(self.length, length), 0

    # -- one pass

    def _read_prompt(self, ids: torch.Tensor) -> torch.Tensor:
        """Many tokens at once are arithmetic, not calls: the tensors' pass reads them."""
        cache: Any = DynamicCache()
        logits = self._lean(ids, cache)
        self.length = ids.shape[1]
        self._make_room(self.length)
        for index, layer in enumerate(cache.layers):
            self._keys[index, :, : self.length] = _array(layer.keys[0])
            self._values[index, :, : self.length] = _array(layer.values[0])
        return logits[:, -1]

    def _read(self, tokens: npt.NDArray[np.int64], places: npt.NDArray[np.int64], mask: Array | None) -> Array:
        """The last layer's output [n, D]; keys and values go behind those that are held."""
        begin = self.length + self.extra
        end = begin + len(tokens)
        self._make_room(end)
        self._reach(int(places.max()) + 1)
        turn = self._cos[places, None], self._sin[places, None]
        hidden: Array = self._embed[tokens]
        with np.errstate(over="ignore"):  # exp of a large number is infinite in silu, whose limit is then right
            for index, layer in enumerate(self._layers):
                hidden = self._layer(layer, index, hidden, turn, slice(begin, end), mask)
        return hidden

    def _layer(
        self, layer: tuple[Any, ...], index: int, hidden: Array, turn: tuple[Array, Array], rows: slice,
        mask: Array | None,
    ) -> Array:  # fmt: skip
        norm_in, qkv, bias, q_norm, k_norm, out, out_bias, norm_mlp, gate_up, down = layer
        joined = _product(self._normed(hidden, norm_in), qkv)
        if bias is not None:
            joined += bias
        queries = self._keep(joined, index, rows, turn, q_norm, k_norm)
        read = _product(self._attend(queries, index, rows.stop, mask), out)
        hidden = hidden + (read if out_bias is None else read + out_bias)
        both = _product(self._normed(hidden, norm_mlp), gate_up)
        inner = both.shape[1] // 2
        gate = both[:, :inner]
        grown: Array = hidden + _product(gate / (1 + np.exp(-gate)) * both[:, inner:], down)
        return grown

    def _keep(
        self, joined: Array, index: int, rows: slice, turn: tuple[Array, Array], q_norm: Array | None,
        k_norm: Array | None,
    ) -> Array:  # fmt: skip
        """Store keys and values [n, heads, width] turned to their places; the queries, turned likewise."""
        lean = self._lean
        parts = joined.reshape(len(joined), -1, lean.width)
        turned = parts[:, : lean.heads + lean.kv_heads]
        if q_norm is not None and k_norm is not None:
            turned[:, : lean.heads] = self._normed(turned[:, : lean.heads], q_norm)
            turned[:, lean.heads :] = self._normed(turned[:, lean.heads :], k_norm)
        half = lean.width // 2
        swapped = np.concatenate((turned[..., half:], turned[..., :half]), axis=-1)
        turned = turned * turn[0] + swapped * turn[1]
        self._keys[index, :, rows] = turned[:, lean.heads :].swapaxes(0, 1)
        self._values[index, :, rows] = parts[:, lean.heads + lean.kv_heads :].swapaxes(0, 1)
        return turned[:, : lean.heads]

    def _attend(self, queries: Array, index: int, end: int, mask: Array | None) -> Array:
        """What the heads read, [n, heads · width]. Query heads that share a key–value head are rows of one product."""
        lean, count = self._lean, len(queries)
        group = lean.heads // lean.kv_heads
        keys, values = self._keys[index, :, :end], self._values[index, :, :end]
        asked = queries.reshape(count, lean.kv_heads, group, lean.width).transpose(1, 2, 0, 3)
        scores = asked.reshape(lean.kv_heads, group * count, lean.width) @ keys.swapaxes(1, 2)
        scores *= self._scale
        if mask is not None:
            scores.reshape(lean.kv_heads, group, count, end)[:] += mask
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        read = (scores @ values).reshape(lean.kv_heads, group, count, lean.width)
        return read.transpose(2, 0, 1, 3).reshape(count, -1)

    def _normed(self, hidden: Array, weight: Array) -> Array:
        """Root-mean-square norm of the last dimension."""
        square = np.einsum("...d,...d->...", hidden, hidden)[..., None]
        normed: Array = hidden * (1 / np.sqrt(square / np.float32(hidden.shape[-1]) + self._eps)) * weight
        return normed

    def _score(self, hidden: Array) -> Array:
        """Logits [n, V]."""
        return _product(self._normed(hidden, self._norm), self._head)

    def _reach(self, length: int) -> None:
        if length > len(self._cos):
            self._cos, self._sin = map(_array, self._lean.angles(length))

    def _make_room(self, needed: int) -> None:
        room = self._keys.shape[2]
        if needed > room:
            more = ((0, 0), (0, 0), (0, max(room, needed - room)), (0, 0))
            self._keys, self._values = np.pad(self._keys, more), np.pad(self._values, more)


def array_passes(model: LoadedModel) -> ArrayPasses | None:
    """Passes for a model that has a lean pass and is small, on a processor; None for any other."""
    lean = lean_pass(model)
    if lean is None or model.device.type != "cpu" or not lean.is_silu:
        return None
    size = sum(parameter.numel() * parameter.element_size() for parameter in model.model.parameters())
    return ArrayPasses(lean) if size <= LARGEST else None


def _array(tensor: torch.Tensor | None) -> Any:
    """The same memory as an array."""
    return None if tensor is None else tensor.detach().numpy()


def _product(rows: Array, weight: Array) -> Array:
    """rows [n, D] · weight [O, D] transposed, [n, O]."""
    result = np.empty((len(rows), len(weight)), np.float32)
    for row, place in zip(rows, result, strict=True):
        weight.dot(row, out=place)
    return result


def _causal(past: int, count: int) -> Array:
    """Additive [n, P + n]."""
    return np.triu(np.full((count, past + count), -np.inf, np.float32), past + 1)
