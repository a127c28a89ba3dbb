"""Texts of different lengths behind beginnings of one that was read, in one pass, with nothing filled up.

A small model spends its time on matrices, and a row of them does not care which text it belongs to: the tokens of all
texts stand in one row there. Only where tokens look at others each text is by itself, behind as much of the kept keys
and values as it begins with; none of those is copied or cut for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional as F

from core.caches.tensors.preallocated import is_plain_dynamic_layer
from core.decoding.forward.forward_pass import Forward
from core.decoding.forward.fused_llama import FusedLlama
from core.decoding.forward.fused_selection import select_fused_pass
from core.interpretability.native_text_pass import NativeTextPass, TextRemainder, native_text_pass


class RaggedBatch:
    """Reads behind a text that stays as it is."""

    def __init__(
        self, fused: FusedLlama, prefix: Sequence[tuple[torch.Tensor, torch.Tensor]], native: NativeTextPass | None
    ) -> None:
        """`prefix`: keys and values [1, heads, T, width] of every layer. `native`: another way to the same."""
        self._fused, self._prefix, self._native = fused, prefix, native

    def last_logits(self, remainders: Sequence[TextRemainder]) -> torch.Tensor:
        """Float32 logits [n, V] behind the last token of each. `remainders`: those that keep most first, so that each can
        write over what the later ones do not keep."""
        if self._native is not None:
            return self._native.last_logits(remainders, self._prefix)
        lean, device = self._fused, self._fused.embed.device
        ids = [token for rest in remainders for token in rest.ids]
        places = [rest.prefix_length + place for rest in remainders for place in range(len(rest.ids))]
        at = torch.tensor(places, device=device)
        angles = tuple(table[at] for table in lean.rotary_tables(max(places) + 1))
        hidden = F.embedding(torch.tensor([ids], device=device), lean.embed)
        masks = [_causal_mask(rest, device) for rest in remainders]
        for index in range(len(lean.layers) - 1):
            hidden = self._layer(index, hidden, angles, remainders, masks)
        return lean.logits(self._layer(len(lean.layers) - 1, hidden, angles, remainders, None))[0]

    def _layer(
        self, index: int, hidden: torch.Tensor, angles: tuple[torch.Tensor, ...], rests: Sequence[TextRemainder],
        masks: Sequence[torch.Tensor | None] | None,
    ) -> torch.Tensor:  # fmt: skip
        """What a layer writes [1, N, D]; without `masks`, behind the last token of each text alone [1, n, D]."""
        lean, layer = self._fused, self._fused.layers[index]
        queries, *new = lean.project(layer, hidden, *angles)
        rooms = [_prefix_buffer(states, rests) for states in self._prefix[index]]
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
        hidden = (hidden if masks else hidden[:, ends]) + lean.merge_heads(layer, torch.cat(found, 2))
        return hidden + lean.mlp(layer, hidden)


def build_ragged_batch(forward: Forward) -> RaggedBatch | None:
    """Behind the text that `forward` has read, where its model is one for which this is worth it."""
    lean = select_fused_pass(forward.model, forward.cache)
    layers = forward.cache.layers if isinstance(lean, FusedLlama) else ()
    if not isinstance(lean, FusedLlama) or not all(map(is_plain_dynamic_layer, layers)):
        return None
    return RaggedBatch(lean, [(layer.keys, layer.values) for layer in layers], native_text_pass(forward.model, lean))


def _prefix_buffer(states: torch.Tensor, remainders: Sequence[TextRemainder]) -> torch.Tensor:
    """A copy of kept states [1, heads, T, width], as far as anybody keeps them, with room behind them."""
    _, heads, _, width = states.shape
    most, kept = max(rest.prefix_length + len(rest.ids) for rest in remainders), remainders[0].prefix_length
    room = states.new_empty(1, heads, most, width)
    room[:, :, :kept] = states[:, :, :kept]
    return room


def _causal_mask(remainder: TextRemainder, device: torch.device) -> torch.Tensor | None:
    """Additive [n, kept + n]: each token sees what is kept, those before it and itself."""
    count = len(remainder.ids)
    if count == 1:
        return None
    lowest = torch.finfo(torch.float32).min
    return torch.full((count, remainder.prefix_length + count), lowest, device=device).triu_(
        remainder.prefix_length + 1
    )
