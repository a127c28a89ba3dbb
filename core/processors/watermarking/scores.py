"""Watermark scores of tokens: membership in the green list, and SynthID's g-values; also for detection in given texts.

transformers' own classes compute hashes and lists; this module calls them for one token at a time. Green lists:
Kirchenbauer et al. 2023 (arXiv 2301.10226); SynthID: Dathathri et al. 2024 (Nature 634, 818).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import torch
from transformers import SynthIDTextWatermarkLogitsProcessor, WatermarkLogitsProcessor

from decodescope.core.events import WatermarkSign


class WatermarkScorer(Protocol):
    """Scores single tokens for one kind of watermark."""

    width: int
    """Number of preceding tokens that determine a token's score."""

    def score_token(self, before: Sequence[int], token: int, repeated: bool) -> WatermarkSign:
        """Score `token` after the text's own tokens `before`; `repeated` is True if the same context has already been
        scored.
        """


class GreenListScorer:
    """Membership in the green list, as counted by `WatermarkDetector`."""

    def __init__(self, processor: WatermarkLogitsProcessor, ratio: float) -> None:
        self.processor, self._ratio = processor, ratio
        self._selfhash = processor.seeding_scheme == "selfhash"
        self.width = processor.context_width - int(self._selfhash)

    def score_token(self, before: Sequence[int], token: int, repeated: bool) -> WatermarkSign:
        """Return green or not; not counted if too few tokens precede it."""
        deviation = (self._ratio * (1 - self._ratio)) ** 0.5
        if len(before) < self.width:
            return WatermarkSign(0.0, 0.0, self._ratio, deviation, counts=False)
        end = [*before[len(before) - self.width :], *([token] if self._selfhash else [])]
        greens = self.processor._get_greenlist_ids(_to_long_tensor(end, self.processor.rng.device))
        green = float((greens == token).any())
        return WatermarkSign(green, green, self._ratio, deviation)


class SynthIdScorer:
    """Mean of a token's g-values, and their mean weighted by depth."""

    def __init__(self, processor: SynthIDTextWatermarkLogitsProcessor) -> None:
        self._processor = processor
        self.width = processor.ngram_len - 1
        depth = len(processor.keys)
        weights = torch.linspace(10.0, 1.0, depth)
        self._weights, self._deviation = weights * depth / weights.sum(), (0.25 / depth) ** 0.5

    def score_token(self, before: Sequence[int], token: int, repeated: bool) -> WatermarkSign:
        """Return the mean of its g-values; not counted after too few tokens, or if the same context has been scored
        before.
        """
        if len(before) < self.width:
            return WatermarkSign(0.0, 0.0, 0.5, self._deviation, counts=False)
        ngram = _to_long_tensor([*before[len(before) - self.width :], token], self._processor.device)
        values = self._processor.compute_g_values(cast("torch.LongTensor", ngram[None]))[0, 0].float().cpu()
        weighted = float((values * self._weights).mean())
        return WatermarkSign(float(values.mean()), weighted, 0.5, self._deviation, counts=not repeated)


def _to_long_tensor(tokens: Sequence[int], device: torch.device) -> torch.LongTensor:
    """Convert to the type in transformers' annotations."""
    return cast("torch.LongTensor", torch.tensor(tokens, device=device))


class WatermarkTextScorer:
    """Scores one text token by token."""

    def __init__(self, signs: WatermarkScorer) -> None:
        self._signs = signs
        self._ids: list[int] = []
        self._seen: set[tuple[int, ...]] = set()

    def score_next(self, token: int) -> WatermarkSign:
        """Score the text's next token."""
        width = self._signs.width
        decides = tuple(self._ids[len(self._ids) - width :]) if len(self._ids) >= width else ()
        sign = self._signs.score_token(self._ids, token, decides in self._seen)
        if decides:
            self._seen.add(decides)
        self._ids.append(token)
        return sign
