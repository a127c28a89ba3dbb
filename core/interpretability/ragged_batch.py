"""Texts of different lengths behind beginnings of one that was read, in one pass, with nothing filled up.

A small model spends its time on matrices, and a row of them does not care which text it belongs to: the tokens of all
texts stand in one row there. Only where tokens look at others each text is by itself, behind as much of the kept keys
and values as it begins with; none of those is copied or cut for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional as F

from core.caches.tensors.preallocated import grows_plainly
from core.decoding.forward.forward_pass import Forward
from core.decoding.forward.fused_llama import FusedLlama
from core.decoding.forward.fused_selection import lean_pass
from core.interpretability.native_text_pass import NativeTextPass, TextRemainder, wide


class RaggedBatch:
    """Reads behind a text that stays as it is."""

    def __init__(
        self, lean: FusedLlama, kept: Sequence[tuple[torch.Tensor, torch.Tensor]], quicker: NativeTextPass | None
    ) -> None:
        """`kept`: keys and values [1, heads, T, width] of every layer. `quicker`: another way to the same."""
        self._lean, self._kept, self._quicker = lean, kept, quicker

    def endings(self, rests: Sequence[TextRemainder]) -> torch.Tensor:
        """Float32 logits [n, V] behind the last token of each. `rests`: those that keep most first, so that each can
        write over what the later ones do not keep."""
        if self._quicker is not None:
            return self._quicker.endings(rests, self._kept)
        lean, device = self._lean, self._lean.embed.device
        ids = [token for rest in rests for token in rest.ids]
        places = [rest.kept + place for rest in rests for place in range(len(rest.ids))]
        at = torch.tensor(places, device=device)
        angles = tuple(table[at] for table in lean.angles(max(places) + 1))
        hidden = F.embedding(torch.tensor([ids], device=device), lean.embed)
        masks = [_mask(rest, device) for rest in rests]
        for index in range(len(lean.layers) - 1):
            hidden = self._layer(index, hidden, angles, rests, masks)
        return lean.score(self._layer(len(lean.layers) - 1, hidden, angles, rests, None))[0]

    def _layer(
        self, index: int, hidden: torch.Tensor, angles: tuple[torch.Tensor, ...], rests: Sequence[TextRemainder],
        masks: Sequence[torch.Tensor | None] | None,
    ) -> torch.Tensor:  # fmt: skip
        """What a layer writes [1, N, D]; without `masks`, behind the last token of each text alone [1, n, D]."""
        lean, layer = self._lean, self._lean.layers[index]
        queries, *new = lean.project(layer, hidden, *angles)
        rooms = [_room(states, rests) for states in self._kept[index]]
        found, begin, ends = list[torch.Tensor](), 0, list[int]()
        for number, (kept, ids) in enumerate(rests):
            end = begin + len(ids)
            ends.append(end - 1)
            stop = kept + len(ids)
            for room, states in zip(rooms, new, strict=True):
                room[:, :, kept:stop] = states[:, :, begin:end]
            read = F.scaled_dot_product_attention(
                queries[:, :, begin if masks else end - 1 : end], rooms[0][:, :, :stop], rooms[1][:, :, :stop],
                attn_mask=masks[number] if masks else None, enable_gqa=lean.is_grouped,
            )  # fmt: skip
            found.append(read)
            begin = end
        hidden = (hidden if masks else hidden[:, ends]) + lean.merge(layer, torch.cat(found, 2))
        return hidden + lean.mlp(layer, hidden)


def ragged(whole: Forward) -> RaggedBatch | None:
    """Behind the text that `whole` has read, where its model is one for which this is worth it."""
    lean = lean_pass(whole.model, whole.cache)
    layers = whole.cache.layers if isinstance(lean, FusedLlama) else ()
    if not isinstance(lean, FusedLlama) or not all(map(grows_plainly, layers)):
        return None
    return RaggedBatch(lean, [(layer.keys, layer.values) for layer in layers], wide(whole.model, lean))


def _room(states: torch.Tensor, rests: Sequence[TextRemainder]) -> torch.Tensor:
    """A copy of kept states [1, heads, T, width], as far as anybody keeps them, with room behind them."""
    _, heads, _, width = states.shape
    most, kept = max(rest.kept + len(rest.ids) for rest in rests), rests[0].kept
    room = states.new_empty(1, heads, most, width)
    room[:, :, :kept] = states[:, :, :kept]
    return room


def _mask(rest: TextRemainder, device: torch.device) -> torch.Tensor | None:
    """Additive [n, kept + n]: each token sees what is kept, those before it and itself."""
    count = len(rest.ids)
    if count == 1:
        return None
    lowest = torch.finfo(torch.float32).min
    return torch.full((count, rest.kept + count), lowest, device=device).triu_(rest.kept + 1)
