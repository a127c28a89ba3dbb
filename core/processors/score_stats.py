"""Statistics of scores and texts for samplers: by native code if it is built, otherwise by torch."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, NamedTuple

from decodescope.core.native.tensor_address import row_address, tensor_address

if TYPE_CHECKING:
    import torch

    from decodescope.core.native.native_library import NativeLibrary, SamplerFunctions

_FLOAT, _DOUBLE, _INTEGER = 4, 8, 8
"""Sizes in bytes."""


_BEST, _LOWEST, _LOG_SUM, _ENTROPY, _REMAINING, _DEVIATION = range(6)
"""Indices into the statistics of a row (`SamplerFunctions.score_stats`)."""
_STAT_COUNT = 6


class LikelyTokens(NamedTuple):
    """The likeliest tokens of a row above a threshold, likeliest first, and the total number above it."""

    tokens: list[int]
    probabilities: list[float]
    total: int


def get_native_library() -> NativeLibrary | None:
    """Return the native library, if it is built. Imported on first use, because listing settings does not need it."""
    from decodescope.core.native.native_library import library

    return library()


def native_samplers(scores: torch.Tensor) -> SamplerFunctions | None:
    """Return the native functions for scores they support: float32 in host memory."""
    found = get_native_library()
    if found is None or not scores.is_cpu or scores.element_size() != _FLOAT or not scores.is_floating_point():
        return None
    return found.samplers


def _native_stats(scores: torch.Tensor) -> array[float] | None:
    """Return the statistics of all rows of scores [B, V], one row after another; None without native code."""
    found = native_samplers(scores)
    if found is None:
        return None
    scores, (rows, vocabulary) = scores.contiguous(), scores.shape
    figures = array("d", bytes(_STAT_COUNT * _DOUBLE * rows))
    found.score_stats(tensor_address(scores, scores.dtype), rows, vocabulary, figures.buffer_info()[0])
    return figures


def entropies(scores: torch.Tensor) -> list[tuple[float, float]]:
    """Return the entropy in nats and the number of remaining tokens of each row of scores [B, V]."""
    if (found := _native_stats(scores)) is not None:
        return list(zip(found[_ENTROPY::_STAT_COUNT], found[_REMAINING::_STAT_COUNT], strict=True))
    import torch

    uncertain = torch.special.entr(scores.softmax(-1)).sum(-1).tolist()
    struck = scores.isneginf().sum(-1).tolist()
    return [(entropy, scores.shape[-1] - gone) for entropy, gone in zip(uncertain, struck, strict=True)]


def max_and_logsumexp(scores: torch.Tensor) -> list[tuple[float, float]]:
    """Return the maximum and ln Σ exp(score) of each row of scores [B, V]."""
    if (found := _native_stats(scores)) is not None:
        return list(zip(found[_BEST::_STAT_COUNT], found[_LOG_SUM::_STAT_COUNT], strict=True))
    return list(zip(scores.amax(-1).tolist(), scores.logsumexp(-1).tolist(), strict=True))


def max_and_deviation(scores: torch.Tensor) -> list[tuple[float, float, float | None]]:
    """Return per row of scores [B, V]: the maximum, the standard deviation of the finite scores, and their minimum if
    it was computed anyway.
    """
    if (known := _native_stats(scores)) is not None:
        return list(zip(*(known[place::_STAT_COUNT] for place in (_BEST, _DEVIATION, _LOWEST)), strict=True))
    found = scores.std(-1, correction=0, keepdim=True)
    if not all(math.isfinite(one) for (one,) in found.tolist()):
        finite = scores.isfinite()
        count = finite.sum(-1, keepdim=True).clamp(min=1)
        mean = scores.masked_fill(~finite, 0.0).sum(-1, keepdim=True) / count
        found = ((scores - mean).masked_fill(~finite, 0.0).square().sum(-1, keepdim=True) / count).sqrt()
    best = scores.amax(-1).tolist()
    return [(maximum, deviation, None) for maximum, (deviation,) in zip(best, found.tolist(), strict=True)]


def likely_tokens(scores: torch.Tensor, threshold: float, max_count: int, row: int = 0) -> LikelyTokens:
    """Return the tokens with p ≥ threshold in a row of scores [B, V], at most `max_count`; among equal ones the first
    comes first.
    """
    vocabulary, found = scores.shape[-1], native_samplers(scores)
    max_count = min(max_count, vocabulary)
    if found is None:
        return _likely_by_torch(scores[row], threshold, max_count)
    tokens, shares = array("q", bytes(_INTEGER * max_count)), array("f", bytes(_FLOAT * max_count))
    scores = scores.contiguous()
    begin = tensor_address(scores, scores.dtype) + _FLOAT * range(len(scores))[row] * vocabulary
    count = found.likely_tokens(
        begin, vocabulary, threshold, max_count, tokens.buffer_info()[0], shares.buffer_info()[0]
    )
    return LikelyTokens(tokens[:count].tolist(), shares[:count].tolist(), count)


def _likely_by_torch(row: torch.Tensor, threshold: float, max_count: int) -> LikelyTokens:
    shares = row.softmax(-1)
    top = shares.topk(max_count)
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    high = [(token, share) for token, share in pairs if share >= threshold]
    count = (
        len(high) if len(high) < max_count else int((shares.cpu().double() >= threshold).sum())
    )  # MPS has no float64
    return LikelyTokens([token for token, _ in high], [share for _, share in high], count)


def score_histogram(row: torch.Tensor, lowest: float, highest: float, parts: int) -> tuple[int, ...]:
    """Return the histogram of the finite scores [V] in equal parts between two of them."""
    found = native_samplers(row)
    if found is None:
        return _histogram_by_numpy(row[row.isfinite()], lowest, highest, parts)
    row, counts = row.contiguous(), array("q", bytes(_INTEGER * parts))
    found.histogram(tensor_address(row, row.dtype), len(row), (lowest, highest), parts, counts.buffer_info()[0])
    return tuple(counts)


def _histogram_by_numpy(row: torch.Tensor, lowest: float, highest: float, parts: int) -> tuple[int, ...]:
    """Count with NumPy, which takes a third of the time of torch's histogram for small integers."""
    import numpy as np

    width = highest - lowest or 1.0
    places = (row.float().cpu().numpy() - lowest) * (parts / width)
    found = np.bincount(places.astype(np.uint8), minlength=parts + 1).tolist()
    return (*found[: parts - 1], found[parts - 1] + found[parts])  # the maximum belongs to the last part


def cut_below(scores: torch.Tensor, floors: list[float]) -> torch.Tensor:
    """Return scores [B, V] with values below their row's floor set to −∞."""
    floor = floors[0] if len(floors) == 1 else scores.new_tensor(floors)[:, None]
    return scores.masked_fill(scores < floor, -math.inf)


def add_at_tokens(scores: torch.Tensor, additions: dict[int, dict[int, float]]) -> torch.Tensor:
    """Return scores [B, V] with additions by row and token; the same tensor if there are none."""
    if not any(additions.values()):
        return scores
    scores = scores.clone()
    if native_samplers(scores) is not None:  # NumPy takes a quarter of torch's time for a few numbers
        numbers = scores.numpy()
        for row, found in additions.items():
            numbers[row, list(found)] += list(found.values())
        return scores
    for row, found in additions.items():
        scores[row, list(found)] += scores.new_tensor(list(found.values()))
    return scores


def last_token_scores(scores: torch.Tensor, ids: torch.Tensor) -> list[float]:
    """Return, for each row of scores [B, V], the score of the last token of its text in ids [B, T]."""
    if native_samplers(scores) is not None:
        numbers, last = scores.numpy(), ids.numpy()[:, -1]
        return [float(numbers[row, token]) for row, token in enumerate(last)]
    found: list[float] = scores.gather(-1, ids[:, -1:]).flatten().tolist()
    return found


def find_passages(
    ids: torch.Tensor, row: int, window: int, breaks: tuple[int, int], lengths: tuple[int, int]
) -> list[tuple[int, int]] | None:  # fmt: skip
    """Return (position, length) of the tokens in the last `window` of a text that follow an earlier occurrence of its
    end.

    `ids` is int64 [B, T]; `lengths` are the minimum and maximum; positions count from the start of the window.
    `breaks`: the address of int8 per token and the number of tokens; one more entry is for ids that are not tokens.
    Return None without native code, or if an entry is not known yet.
    """
    found = get_native_library()
    if found is None or not ids.is_cpu or ids.element_size() != _INTEGER or ids.stride(1) != 1:
        return None
    output, place = array("q", bytes(2 * _INTEGER * window)), ids.shape[1] - window + row * ids.stride(0)
    begin = row_address(ids, ids.dtype, place, window)
    count = found.samplers.repeated_passages(begin, window, breaks, lengths, output.buffer_info()[0])
    return None if count < 0 else list(zip(output[0 : 2 * count : 2], output[1 : 2 * count : 2], strict=True))
