"""The layers of a model of the Llama kind over many tokens at once, in machine code, where that is built.

What a small model computes between its products takes as long as they do, one operation behind another over numbers
that have left the processor's own memory by then. The same weights in the same order as the lean pass, and held against
it before it is used.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F
from transformers import DynamicCache

from core.decoding.forward.fused_llama import FusedLayerWeights, FusedLlama
from core.decoding.forward.native_linear import NativeGatedMlp, NativeLinear
from core.models.loaded_model import LoadedModel
from core.native import structs
from core.native.native_library import NativeLibrary, library

log = logging.getLogger(__name__)

_KEY = "wide_pass"
_STEP = 32
"""Numbers of a head that are taken at once, at most."""
_NEAR = 1e-4
"""How far states may lie from the lean pass's, as a share of the largest."""

Kept = tuple[torch.Tensor, torch.Tensor]
"""A layer's keys and values [1, heads, T, width] of a text that was read."""


class TextRemainder(NamedTuple):
    """What is to be read of a text that begins with the first `kept` tokens of another."""

    kept: int
    ids: Sequence[int]


class _NativeLayerWeights(NamedTuple):
    """What a layer is made of. The lean pass holds what norms are addresses of."""

    norm: structs.NormStruct
    qkv: NativeLinear
    q_norm: structs.NormStruct
    k_norm: structs.NormStruct
    out: NativeLinear
    norm_mlp: structs.NormStruct
    gate_up: NativeGatedMlp
    down: NativeLinear


class NativeTextPass:
    """Reads texts behind what they begin with."""

    def __init__(self, lean: FusedLlama, found: NativeLibrary) -> None:
        self._lean, self._library = lean, found
        self._layers = [_layer(layer, lean.eps, found) for layer in lean.layers]
        self._norm, self._head = _norm(lean.norm, lean.eps), NativeLinear(found, [(lean.head, None)])

    def is_of(self, lean: FusedLlama) -> bool:
        """Whether it was made from the same weights."""
        return self._lean is lean

    def states(self, rests: Sequence[TextRemainder], kept: Sequence[Kept] = ()) -> torch.Tensor:
        """What stands between the layers, [L + 1, n, D], text behind text. Without `kept` no text keeps anything."""
        seats = _Seats(rests, kept)
        embedded = self._embed(seats)
        found = embedded.new_empty(len(self._layers) + 1, *embedded.shape)
        found[0] = embedded
        for index in range(len(self._layers)):
            found[index + 1] = found[index]
            self._pass(index, found[index + 1], seats, False)
        return found

    def endings(self, rests: Sequence[TextRemainder], kept: Sequence[Kept] = ()) -> torch.Tensor:
        """Float32 logits [texts, V] behind the last token of each."""
        seats = _Seats(rests, kept)
        hidden = self._embed(seats)
        last = len(self._layers) - 1
        for index in range(last):
            self._pass(index, hidden, seats, False)
        return self.score(self._pass(last, hidden, seats, True))

    def score(self, states: torch.Tensor) -> torch.Tensor:
        """Float32 logits [n, V] of states [n, D] that a layer wrote."""
        return self._head(self._normed(states.contiguous(), self._norm))

    def _embed(self, seats: _Seats) -> torch.Tensor:
        return F.embedding(seats.ids, self._lean.embed)

    def _pass(self, index: int, hidden: torch.Tensor, seats: _Seats, last_only: bool) -> torch.Tensor:
        """hidden [n, D], which becomes what the layer writes; of the last token of each text alone, a new one."""
        layer = self._layers[index]
        read = self._attend(index, self._project(index, hidden, seats), seats, last_only)
        if last_only:
            hidden = hidden[seats.ends]
        normed = self._normed(layer.out.add_to(hidden, read), layer.norm_mlp)
        return layer.down.add_to(hidden, layer.gate_up(normed))

    def _project(self, index: int, hidden: torch.Tensor, seats: _Seats) -> torch.Tensor:
        """Queries, keys and values of all tokens, before they are turned to their places. Below the first layer they
        depend on the token alone, and texts that differ in a few tokens have few different ones."""
        layer = self._layers[index]
        if index or seats.different.numel() == seats.ids.numel():
            return layer.qkv(self._normed(hidden, layer.norm))
        embedded = F.embedding(seats.different, self._lean.embed)
        return F.embedding(seats.which, layer.qkv(self._normed(embedded, layer.norm)))

    def _normed(self, hidden: torch.Tensor, norm: structs.NormStruct) -> torch.Tensor:
        normed = torch.empty_like(hidden)
        self._library.norm(hidden.data_ptr(), norm, hidden.shape, normed.data_ptr())
        return normed

    def _attend(self, index: int, joined: torch.Tensor, seats: _Seats, last_only: bool) -> torch.Tensor:
        """What the heads read [n, heads · width] with queries, keys and values `joined` of all tokens."""
        lean, layer = self._lean, self._layers[index]
        cos, sin = lean.angles(seats.longest)
        read = joined.new_empty(len(seats.rests) if last_only else len(joined), lean.heads * lean.width)
        keys, values, places = seats.kept_of(index)
        self._library.beside(structs.RaggedAttentionStruct(
            heads=lean.heads, kv_heads=lean.kv_heads, width=lean.width, scaling=lean.width**-0.5,
            q_norm=layer.q_norm, k_norm=layer.k_norm, cos=cos.data_ptr(), sin=sin.data_ptr(), texts=len(seats.rests),
            last_only=int(last_only), threads=torch.get_num_threads(), places=places,
            kept=ctypes.addressof(seats.kept), counts=ctypes.addressof(seats.counts), keys=keys, values=values,
            joined=joined.data_ptr(), read=read.data_ptr(),
        ))  # fmt: skip
        return read


class _Seats:
    """Where the tokens of a pass stand."""

    def __init__(self, rests: Sequence[TextRemainder], kept: Sequence[Kept]) -> None:
        self.rests = rests
        numbers = ctypes.c_int64 * len(rests)
        self.kept, self.counts = numbers(*(rest.kept for rest in rests)), numbers(*(len(rest.ids) for rest in rests))
        self.longest = max(rest.kept + len(rest.ids) for rest in rests)
        self.ends = torch.tensor([len(rest.ids) for rest in rests]).cumsum(0) - 1
        self.ids = torch.tensor([token for rest in rests for token in rest.ids])
        self.different, self.which = self.ids.unique(return_inverse=True)
        self._read = [(keys.contiguous(), values.contiguous()) for keys, values in kept]

    def kept_of(self, index: int) -> tuple[int | None, int | None, int]:
        """Addresses of a layer's keys and values, and tokens from one head to the next."""
        if not self._read:
            return None, None, 0
        keys, values = self._read[index]
        return keys.data_ptr(), values.data_ptr(), keys.shape[2]


def _layer(layer: FusedLayerWeights, eps: float, found: NativeLibrary) -> _NativeLayerWeights:
    maps = layer.gate_up.weights
    gate, up = maps if len(maps) > 1 else maps[0].chunk(2)
    return _NativeLayerWeights(
        norm=_norm(layer.norm_in, eps), q_norm=_norm(layer.q_norm, eps), k_norm=_norm(layer.k_norm, eps),
        norm_mlp=_norm(layer.norm_mlp, eps),
        qkv=NativeLinear(found, list(zip(layer.qkv.weights, layer.qkv.biases, strict=True))),
        out=NativeLinear(found, [(layer.out, layer.out_bias)]), gate_up=NativeGatedMlp(found, gate, up),
        down=NativeLinear(found, [(layer.down, None)]),
    )  # fmt: skip


def _norm(weight: torch.Tensor | None, eps: float) -> structs.NormStruct:
    if weight is None:
        return structs.NormStruct()
    return structs.NormStruct(structs.NORMS["root_mean_square"], weight.data_ptr(), None, eps)


def wide(model: LoadedModel, lean: FusedLlama) -> NativeTextPass | None:
    """The wide pass of a model whose lean pass is `lean`, where it is built and comes to the same; made once."""
    found = library()
    if found is None or not _may(lean):
        return None
    tried: tuple[FusedLlama, NativeTextPass | None] | None = model.remembered.get(_KEY)
    if tried is None or tried[0] is not lean:
        made = NativeTextPass(lean, found)
        model.remembered[_KEY] = tried = (lean, made if _agrees(made, lean) else None)
    return tried[1]


def _may(lean: FusedLlama) -> bool:
    return lean.embed.device.type == "cpu" and lean.is_silu and lean.width % _STEP == 0


@torch.inference_mode()
def _agrees(made: NativeTextPass, lean: FusedLlama) -> bool:
    """Whether both write the same between the layers, and behind texts that begin alike."""
    ids = [token % len(lean.embed) for token in range(1, 9)]
    cache: Any = DynamicCache()
    expected = lean.states(torch.tensor([ids]), cache)[:, 0]
    kept = [(layer.keys, layer.values) for layer in cache.layers]
    near = _is_near(made.states([TextRemainder(0, ids)]), expected)
    both = made.endings([TextRemainder(5, ids[5:]), TextRemainder(0, ids[:7])], kept)
    if near and _is_near(both, lean.score(expected[-1])[[-1, -2]]):
        return True
    log.info("the wide pass disagrees with the lean one, which is used")
    return False


def _is_near(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool((found - expected).abs().max() <= _NEAR * expected.abs().max().clamp(min=1.0))
