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

from core.caches.tensors.reading import memory_of
from core.decoding.forward.forward import Forward
from core.decoding.speculation.tree_support import reads_drafts
from core.decoding.whole_text import reads_at_once
from core.inside.reading import fresh, rows
from core.models.model import LoadedModel

ROWS = 16
"""Texts in one pass, at most: more gain nothing, and a stop would have to wait for them."""
LARGEST = 2**26
"""Numbers that the logits of one pass may have (256 MiB in float32)."""


class Variant(NamedTuple):
    """A text that is that of another up to place `kept`; `number` says which of the variants it is."""

    number: int
    kept: int
    ids: tuple[int, ...]


Ending = tuple[int, torch.Tensor]
"""A variant's number, and the float32 logits [V] behind its last token."""


def of_text(
    model: LoadedModel,
    encoded: Sequence[int],
    text: Sequence[int],
    variants: Sequence[Variant],
    cancel: threading.Event,
) -> Iterator[list[Ending]]:
    """Endings of variants of what the decoder reads, a batch at a time; `cancel` is looked at before each."""
    forward, read, shares = fresh(model, len(text), _once(encoded)), 0, _reads_on(model)
    for batch in _batches(sorted(variants, key=lambda one: one.kept), _size(model, variants)):
        if cancel.is_set():
            return
        kept = max(0, batch[0].kept - 1) if shares else 0  # each row needs a token to be read
        if kept > read:
            forward(rows(model, [text[read:kept]]))
            read = kept
        here = _repeated(forward, len(batch)) if kept else fresh(model, len(text), _once(encoded, len(batch)))
        yield _read(here, [one.number for one in batch], [one.ids[kept:] for one in batch])


def of_source(
    model: LoadedModel, text: Sequence[int], variants: Sequence[Variant], cancel: threading.Event
) -> Iterator[list[Ending]]:
    """Endings of one `text` behind variants of what the encoder reads: those of one length together, since an encoder
    sees what fills a row up."""
    size = ROWS if reads_at_once(model) else 1
    for _, alike in groupby(sorted(variants, key=_length), _length):
        for batch in _batches(list(alike), size):
            if cancel.is_set():
                return
            forward = fresh(model, len(text), [one.ids for one in batch])
            yield _read(forward, [one.number for one in batch], [text] * len(batch))


def _read(forward: Forward, numbers: Sequence[int], texts: Sequence[Sequence[int]]) -> list[Ending]:
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


def _size(model: LoadedModel, variants: Sequence[Variant]) -> int:
    """How many a pass takes; one where a model's whole pass is something else than what it writes by."""
    if not variants or not reads_at_once(model):
        return 1
    lengths = [len(one.ids) for one in variants]
    return max(1, min(ROWS, LARGEST // ((max(lengths) - min(lengths) + 1) * model.vocabulary)))


def _batches(variants: Sequence[Variant], size: int) -> Iterator[Sequence[Variant]]:
    return (variants[begin : begin + size] for begin in range(0, len(variants), size))


def _once(encoded: Sequence[int], count: int = 1) -> list[Sequence[int]]:
    return [encoded] * count if encoded else []


def _length(variant: Variant) -> int:
    return len(variant.ids)
