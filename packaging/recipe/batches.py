"""From documents to padded batches of token ids."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from corpus import TASKS, Document, document, task
from torch import Tensor

POOL = 768
Place = tuple[int, int]  # in the stream of batches: the pool, and how many batches of it are used up
START: Place = (0, 0)


@dataclass(frozen=True)
class Batch:
    """Rows of one decoder batch: ``ids`` (rows, length) and the loss weight of each token; the place after it."""

    ids: Tensor
    weights: Tensor
    after: Place


@dataclass(frozen=True)
class PairBatch:
    """Inputs (rows, source length), their mask, targets (rows, target length, -100 as padding); the place after."""

    ids: Tensor
    mask: Tensor
    labels: Tensor
    after: Place


def encode(tokenizer: Any, doc: Document) -> tuple[list[int], list[float]]:
    """Token ids of a document and the weight of each in the loss."""
    ids: list[int] = []
    weights: list[float] = []
    for text, weight in doc.segments:
        piece = tokenizer.encode(text, add_special_tokens=False)
        ids += piece
        weights += [weight] * len(piece)
    return ids, weights


def padded(rows: Sequence[Sequence[float]], value: float, dtype: torch.dtype) -> Tensor:
    """Rows of unequal length as one tensor, filled on the right."""
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], dtype=dtype)


def by_length(lengths: list[int], budget: int, rng: random.Random) -> list[list[int]]:
    """Indices in groups of like length whose padded size stays within ``budget`` tokens, in random order."""
    groups: list[list[int]] = [[]]
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if groups[-1] and (len(groups[-1]) + 1) * lengths[index] > budget:
            groups.append([])
        groups[-1].append(index)
    rng.shuffle(groups)
    return groups


def _pooled(
    start: Place, budget: int, row: Callable[[int], Any], size: Callable[[Any], int]
) -> Iterator[tuple[list[Any], Place]]:
    pool, used = start
    while True:
        rows = [row(pool * POOL + index) for index in range(POOL)]
        groups = by_length([size(one) for one in rows], budget, random.Random(pool))
        for number, group in enumerate(groups[used:], used + 1):
            yield [rows[index] for index in group], (pool, number)
        pool, used = pool + 1, 0


def decoder_batches(tokenizer: Any, seed: int, budget: int, mix: Any = None, start: Place = START) -> Iterator[Batch]:
    """Endless batches of about ``budget`` tokens, from a place in their stream on."""

    def row(index: int) -> tuple[list[int], list[float]]:
        return encode(tokenizer, document(seed, index, mix=mix))

    for rows, after in _pooled(start, budget, row, lambda one: len(one[0])):
        ids = padded([ids for ids, _ in rows], tokenizer.pad_token_id, torch.long)
        yield Batch(ids, padded([weights for _, weights in rows], 0.0, torch.float), after)


def pair_batches(tokenizer: Any, seed: int, budget: int, mix: Any = TASKS, start: Place = START) -> Iterator[PairBatch]:
    """Endless batches of tasks for the encoder-decoder; ``budget`` counts input and target tokens."""

    def row(index: int) -> tuple[list[int], list[int]]:
        _, source, target = task(seed, index, mix=mix)
        return tokenizer.encode(source), tokenizer.encode(target)

    for rows, after in _pooled(start, budget, row, lambda pair: len(pair[0]) + len(pair[1])):
        ids = padded([source for source, _ in rows], tokenizer.pad_token_id, torch.long)
        labels = padded([target for _, target in rows], -100, torch.long)
        yield PairBatch(ids, (ids != tokenizer.pad_token_id).long(), labels, after)
