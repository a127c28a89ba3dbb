"""Many texts that differ from one in a few tokens, each scored behind its end, in as few passes as that takes.

Rows of different lengths are filled up behind their last token, where no causal model looks: nothing has to be hidden
by a mask, so that every architecture reads them rightly. Where a model reads on behind what it has kept, the part
before the first change is read once for all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import torch

from core.caches.tensors import cache_editing
from core.caches.tensors.continuation_probe import memory_of
from core.decoding.forward.forward_pass import Forward
from core.decoding.full_text_scores import reads_at_once
from core.decoding.speculation.tree_support import reads_drafts
from core.interpretability.native_text_pass import TextRemainder
from core.interpretability.ragged_batch import RaggedBatch, ragged
from core.interpretability.text_pass import fresh, rows
from core.models.loaded_model import LoadedModel

ROWS = 16
"""Texts in one pass, at most: more gain nothing, and a stop would have to wait for them."""
LARGEST = 2**26
"""Numbers that the logits of one pass may have (256 MiB in float32)."""
_FILLING = 256
"""Tokens that keep a processor busy: what a pass over more of them computes leaves its own memory on the way, and rows
of different lengths cost what fills them up."""


_TOGETHER = 768
"""Tokens in one pass where texts of different lengths stand side by side: more are not quicker."""


class TextVariant(NamedTuple):
    """A text that is that of another up to place `kept`; `number` says which of the variants it is."""

    number: int
    kept: int
    ids: tuple[int, ...]


Ending = tuple[int, torch.Tensor]
"""A variant's number, and the float32 logits [V] behind its last token."""


class PrefixPass(NamedTuple):
    """What a model has read."""

    encoded: Sequence[int]
    """By its encoder; empty without one."""
    length: int
    """Tokens of the text itself."""


def of_text(
    whole: Forward, read: PrefixPass, variants: Sequence[TextVariant], cancel: threading.Event
) -> Iterator[list[Ending]]:
    """Endings of variants of the text that `whole` has read, a batch at a time; `cancel` is looked at before each.

    From the last change to the first: all that stands before one is what `whole` still holds, once it has been cut to
    there. Afterwards it is cut, where the model reads on behind what it has kept.
    """
    model, shares = whole.model, _reads_on(whole.model)
    if shares and (together := ragged(whole)) is not None:
        yield from _together(together, variants, cancel)
        return
    ordered = sorted(variants, key=lambda one: one.kept, reverse=True)
    for batch in _filled(model, ordered) if shares else _batches(ordered, _size(model, variants)):
        if cancel.is_set():
            return
        kept = _shared(batch) if shares else 0
        if kept:
            cache_editing.crop(whole.cache, kept)
        here = _repeated(whole, len(batch)) if kept else fresh(model, read.length, _once(read.encoded, len(batch)))
        yield _endings(here, [one.number for one in batch], [one.ids[kept:] for one in batch])


def _together(reader: RaggedBatch, variants: Sequence[TextVariant], cancel: threading.Event) -> Iterator[list[Ending]]:
    """Endings from passes over as many tokens as a stop may wait for."""
    batch, held = list[TextVariant](), 0
    for one in [*sorted(variants, key=_kept, reverse=True), None]:
        length = len(one.ids) - _kept(one) if one else 0
        if batch and (one is None or held + length > _TOGETHER):
            if cancel.is_set():
                return
            found = reader.endings([TextRemainder(_kept(other), other.ids[_kept(other) :]) for other in batch])
            yield [(other.number, logits) for other, logits in zip(batch, found, strict=True)]
            batch, held = [], 0
        if one:
            batch.append(one)
            held += length


def _kept(variant: TextVariant) -> int:
    """Tokens of it that are not read again: one is left at least."""
    return min(variant.kept, len(variant.ids) - 1)


def of_source(
    model: LoadedModel, text: Sequence[int], variants: Sequence[TextVariant], cancel: threading.Event
) -> Iterator[list[Ending]]:
    """Endings of one `text` behind variants of what the encoder reads: those of one length together, since an encoder
    sees what fills a row up."""
    size = ROWS if reads_at_once(model) else 1
    for _, alike in groupby(sorted(variants, key=_length), _length):
        for batch in _batches(list(alike), size):
            if cancel.is_set():
                return
            forward = fresh(model, len(text), [one.ids for one in batch])
            yield _endings(forward, [one.number for one in batch], [text] * len(batch))


def _endings(forward: Forward, numbers: Sequence[int], texts: Sequence[Sequence[int]]) -> list[Ending]:
    longest, shortest = max(map(len, texts)), min(map(len, texts))
    filled = [[*text, *[text[-1]] * (longest - len(text))] for text in texts]
    logits = forward(rows(forward.model, filled), keep=longest - shortest + 1).logits
    return [(number, logits[row, len(texts[row]) - 1 - longest]) for row, number in enumerate(numbers)]


def _repeated(forward: Forward, count: int) -> Forward:
    """Another one at the same place, `count` rows wide."""
    twin = forward.branch()
    twin.expand(count)
    return twin


def _reads_on(model: LoadedModel) -> bool:
    """Whether several tokens read behind a kept text are as good as the whole text read anew."""
    return not model.is_recurrent and reads_at_once(model) and memory_of(model) == "kept" and reads_drafts(model)


def _filled(model: LoadedModel, variants: Sequence[TextVariant]) -> Iterator[list[TextVariant]]:
    """Variants, the last change first, as many in a pass as keep the machine busy and fit into memory."""
    most, batch = _most_tokens(model), list[TextVariant]()
    for one in variants:
        longer = [*batch, one]
        longest = max(len(other.ids) for other in longer) - _shared(longer)
        if batch and (len(longer) > ROWS or len(longer) * longest > most):
            yield batch
            longer = [one]
        batch = longer
    if batch:
        yield batch


def _most_tokens(model: LoadedModel) -> int:
    """In one pass over several texts."""
    return min(LARGEST // model.vocabulary, _FILLING if model.device.type == "cpu" else LARGEST)


def _shared(variants: Sequence[TextVariant]) -> int:
    """Tokens that all of them begin with, when each is left one to be read."""
    return min(map(_kept, variants))


def _size(model: LoadedModel, variants: Sequence[TextVariant]) -> int:
    """How many a pass takes; one where a model's whole pass is something else than what it writes by."""
    if not variants or not reads_at_once(model):
        return 1
    lengths = [len(one.ids) for one in variants]
    return max(1, min(ROWS, LARGEST // ((max(lengths) - min(lengths) + 1) * model.vocabulary)))


def _batches(variants: Sequence[TextVariant], size: int) -> Iterator[Sequence[TextVariant]]:
    return (variants[begin : begin + size] for begin in range(0, len(variants), size))


def _once(encoded: Sequence[int], count: int = 1) -> list[Sequence[int]]:
    return [encoded] * count if encoded else []


def _length(variant: TextVariant) -> int:
    return len(variant.ids)
