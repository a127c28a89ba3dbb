"""Score many variants of one text in as few batched passes as possible.

Rows of different lengths are padded after their last token, where causal models do not look, so no mask is needed and
every architecture reads them correctly. If the model can continue after a cached prefix, the part before the first
change is read once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple

import torch

from decodescope.core.caches.tensors import cache_operations
from decodescope.core.caches.tensors.continuation_probe import memory_kind
from decodescope.core.caches.tensors.dynamic_layers import is_plain_dynamic_layer
from decodescope.core.decoding.forward.forward_pass import Forward
from decodescope.core.decoding.forward.fused_decoder import FusedDecoder, causal_mask, select_fused_pass
from decodescope.core.decoding.speculation.tree_support import supports_drafts
from decodescope.core.decoding.text_scoring import supports_full_pass
from decodescope.core.interpretability.native_text_pass import NativeTextPass, TextRemainder, native_text_pass
from decodescope.core.interpretability.step_query import new_forward, stack_ids
from decodescope.core.models.loaded_model import LoadedModel


class RaggedBatch:
    """Reads texts after a prefix that stays unchanged."""

    def __init__(
        self, fused: FusedDecoder, prefix: Sequence[tuple[torch.Tensor, torch.Tensor]], native: NativeTextPass | None
    ) -> None:
        """`prefix`: keys and values [1, heads, T, width] of every layer. `native`: a faster pass with the same
        result.
        """
        self._fused, self._prefix, self._native = fused, prefix, native

    def last_logits(self, remainders: Sequence[TextRemainder]) -> torch.Tensor:
        """Return float32 logits [n, V] after the last token of each text.

        `remainders` are sorted by decreasing prefix length, so that each can overwrite what later ones do not need.
        """
        if self._native is not None:
            return self._native.last_logits(remainders, self._prefix)
        fused, modules = self._fused, self._fused.modules
        ids = torch.tensor([[token for rest in remainders for token in rest.ids]], device=modules.device)
        places = [rest.prefix_length + place for rest in remainders for place in range(len(rest.ids))]
        positions = torch.tensor(places, device=modules.device)
        ends = torch.tensor([len(rest.ids) for rest in remainders], device=modules.device).cumsum(0) - 1
        hidden, turns = modules.embed_tokens(ids, positions), fused.rotations(positions)
        masks = [causal_mask(len(rest.ids), rest.prefix_length, hidden) for rest in remainders]
        for layer, states in zip(modules.layers, self._prefix, strict=True):
            is_last = layer is modules.layers[-1]
            attend = partial(self._attend, states, remainders, None if is_last else masks)
            hidden = fused.run_layer(layer, hidden, turns, attend, ends if is_last else None)
        return fused.logits(hidden)[0]

    def _attend(
        self, states: tuple[torch.Tensor, torch.Tensor], rests: Sequence[TextRemainder],
        masks: Sequence[torch.Tensor] | None, queries: torch.Tensor, *new: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        """Return the attention output of all texts; without `masks`, only for the last token of each."""
        buffers = [_prefix_buffer(part, rests) for part in states]
        found, begin = list[torch.Tensor](), 0
        for number, (prefix_length, ids) in enumerate(rests):
            end, stop = begin + len(ids), prefix_length + len(ids)
            for buffer, part in zip(buffers, new, strict=True):
                buffer[:, :, prefix_length:stop] = part[:, :, begin:end]
            keys, values = (buffer[:, :, :stop] for buffer in buffers)
            own = queries[:, :, begin if masks else end - 1 : end]
            found.append(self._fused.attention(own, keys, values, masks[number] if masks else None))
            begin = end
        return torch.cat(found, 2)


def build_ragged_batch(forward: Forward) -> RaggedBatch | None:
    """Return a ragged batch after the text that `forward` has read, if its model supports it."""
    fused = select_fused_pass(forward.model, forward.cache)
    layers = forward.cache.layers if fused is not None else ()
    if (
        fused is None
        or fused.has_windows
        or not fused.has_fixed_rotation
        or not all(map(is_plain_dynamic_layer, layers))
    ):
        return None
    native = native_text_pass(forward.model, fused)
    return RaggedBatch(fused, [(layer.keys, layer.values) for layer in layers], native)


def _prefix_buffer(states: torch.Tensor, remainders: Sequence[TextRemainder]) -> torch.Tensor:
    """Copy cached states [1, heads, T, width], as far as any text shares them, with room for new ones."""
    _, heads, _, width = states.shape
    max_length, prefix_length = (
        max(rest.prefix_length + len(rest.ids) for rest in remainders),
        remainders[0].prefix_length,
    )
    room = states.new_empty(1, heads, max_length, width)
    room[:, :, :prefix_length] = states[:, :, :prefix_length]
    return room


MAX_ROWS = 16
"""Maximum texts per pass: more do not help, and cancelling would have to wait for them."""
MAX_LOGITS = 2**26
"""Maximum number of logits per pass (256 MiB in float32)."""
_EFFICIENT_TOKENS = 256
"""Tokens that keep a processor busy: larger passes leave its cache, and rows of different lengths cost padding."""


_MAX_RAGGED_TOKENS = 768
"""Maximum tokens per ragged pass: more are not faster."""


class TextVariant(NamedTuple):
    """A variant of a text that is equal to it in the first `prefix_length` tokens; `number` identifies the variant."""

    number: int
    prefix_length: int
    ids: tuple[int, ...]


VariantLogits = tuple[int, torch.Tensor]
"""A variant's number, and the float32 logits [V] after its last token."""


class PrefixPass(NamedTuple):
    """The text that a model has read."""

    encoded: Sequence[int]
    """Ids read by the encoder; empty without one."""
    length: int
    """Number of tokens of the text itself."""


def score_text_variants(
    forward: Forward, prefix: PrefixPass, variants: Sequence[TextVariant], cancel: threading.Event
) -> Iterator[list[VariantLogits]]:
    """Yield the logits of variants of the text that `forward` has read, batch by batch; `cancel` is checked before
    each.

    Processes the variants from the last change to the first: the cache still holds everything before a change, once it
    is cropped to there. Afterwards `forward` stays cropped if the model can continue after a prefix.
    """
    model, shares = forward.model, _can_continue_prefix(forward.model)
    if shares and (together := build_ragged_batch(forward)) is not None:
        yield from _score_ragged(together, variants, cancel)
        return
    ordered = sorted(variants, key=lambda one: one.prefix_length, reverse=True)
    for batch in _full_batches(model, ordered) if shares else _batches(ordered, _batch_size(model, variants)):
        if cancel.is_set():
            return
        shared_count = _shared_prefix(batch) if shares else 0
        if shared_count:
            cache_operations.crop(forward.cache, shared_count)
        here = (
            _branch_rows(forward, len(batch))
            if shared_count
            else new_forward(model, prefix.length, _repeat_source(prefix.encoded, len(batch)))
        )
        yield _score_padded(here, [one.number for one in batch], [one.ids[shared_count:] for one in batch])


def _score_ragged(
    reader: RaggedBatch, variants: Sequence[TextVariant], cancel: threading.Event
) -> Iterator[list[VariantLogits]]:
    """Yield the logits from ragged passes, each small enough for cancelling to be quick."""
    batch, held = list[TextVariant](), 0
    for one in [*sorted(variants, key=_reusable_length, reverse=True), None]:
        length = len(one.ids) - _reusable_length(one) if one else 0
        if batch and (one is None or held + length > _MAX_RAGGED_TOKENS):
            if cancel.is_set():
                return
            found = reader.last_logits(
                [TextRemainder(_reusable_length(other), other.ids[_reusable_length(other) :]) for other in batch]
            )
            yield [(other.number, logits) for other, logits in zip(batch, found, strict=True)]
            batch, held = [], 0
        if one:
            batch.append(one)
            held += length


def _reusable_length(variant: TextVariant) -> int:
    """Return the number of tokens that are not read again; at least one is left."""
    return min(variant.prefix_length, len(variant.ids) - 1)


def score_source_variants(
    model: LoadedModel, text: Sequence[int], variants: Sequence[TextVariant], cancel: threading.Event
) -> Iterator[list[VariantLogits]]:
    """Yield the logits of one `text` for variants of the encoder's source; only equal lengths share a batch, because an
    encoder sees the padding.
    """
    size = MAX_ROWS if supports_full_pass(model) else 1
    for _, alike in groupby(sorted(variants, key=_variant_length), _variant_length):
        for batch in _batches(list(alike), size):
            if cancel.is_set():
                return
            forward = new_forward(model, len(text), [one.ids for one in batch])
            yield _score_padded(forward, [one.number for one in batch], [text] * len(batch))


def _score_padded(forward: Forward, numbers: Sequence[int], texts: Sequence[Sequence[int]]) -> list[VariantLogits]:
    longest, shortest = max(map(len, texts)), min(map(len, texts))
    filled = [[*text, *[text[-1]] * (longest - len(text))] for text in texts]
    logits = forward(stack_ids(forward.model, filled), keep=longest - shortest + 1).logits
    return [(number, logits[row, len(texts[row]) - 1 - longest]) for row, number in enumerate(numbers)]


def _branch_rows(forward: Forward, count: int) -> Forward:
    """Return a branch of the forward pass with `count` rows."""
    twin = forward.fork()
    twin.expand(count)
    return twin


def _can_continue_prefix(model: LoadedModel) -> bool:
    """Return whether reading several tokens after a cached prefix equals reading the whole text."""
    return (
        not model.is_recurrent and supports_full_pass(model) and memory_kind(model) == "kept" and supports_drafts(model)
    )


def _full_batches(model: LoadedModel, variants: Sequence[TextVariant]) -> Iterator[list[TextVariant]]:
    """Yield batches of variants, the last change first, as large as is efficient and fits into memory."""
    max_tokens, batch = _max_tokens(model), list[TextVariant]()
    for one in variants:
        longer = [*batch, one]
        longest = max(len(other.ids) for other in longer) - _shared_prefix(longer)
        if batch and (len(longer) > MAX_ROWS or len(longer) * longest > max_tokens):
            yield batch
            longer = [one]
        batch = longer
    if batch:
        yield batch


def _max_tokens(model: LoadedModel) -> int:
    """Return the maximum number of tokens per pass over several texts."""
    return min(MAX_LOGITS // model.vocabulary, _EFFICIENT_TOKENS if model.device.type == "cpu" else MAX_LOGITS)


def _shared_prefix(variants: Sequence[TextVariant]) -> int:
    """Return the length of the shared prefix, with at least one token of each left to read."""
    return min(map(_reusable_length, variants))


def _batch_size(model: LoadedModel, variants: Sequence[TextVariant]) -> int:
    """Return the number of texts per pass; one if the model cannot read several tokens at once."""
    if not variants or not supports_full_pass(model):
        return 1
    lengths = [len(one.ids) for one in variants]
    return max(1, min(MAX_ROWS, MAX_LOGITS // ((max(lengths) - min(lengths) + 1) * model.vocabulary)))


def _batches(variants: Sequence[TextVariant], size: int) -> Iterator[Sequence[TextVariant]]:
    return (variants[begin : begin + size] for begin in range(0, len(variants), size))


def _repeat_source(encoder_ids: Sequence[int], count: int = 1) -> list[Sequence[int]]:
    return [encoder_ids] * count if encoder_ids else []


def _variant_length(variant: TextVariant) -> int:
    return len(variant.ids)
