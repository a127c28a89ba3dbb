"""What watermarks leave in a text: which tokens stand on the green list, what SynthID's g-values are; and both of them
searched for in a text that is given.

transformers' own classes hash and draw; this only asks them about one token after the other. Green lists: Kirchenbauer
et al. 2023 (arXiv 2301.10226); SynthID: Dathathri et al. 2024 (Nature 634, 818).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

import torch
from transformers import SynthIDTextWatermarkLogitsProcessor, WatermarkLogitsProcessor

from core.events import WatermarkSign


class WatermarkScorer(Protocol):
    """One kind of watermark, asked about one token of one text."""

    width: int
    """Tokens before one that decide what it shows."""

    def score_token(self, before: Sequence[int], token: int, repeated: bool) -> WatermarkSign:
        """What `token` shows behind `before`, the text's own tokens; `repeated`: what decides has decided before."""


class GreenListScorer:
    """Tokens on the green list, as `WatermarkDetector` counts them."""

    def __init__(self, processor: WatermarkLogitsProcessor, ratio: float) -> None:
        self.processor, self._ratio = processor, ratio
        self._selfhash = processor.seeding_scheme == "selfhash"
        self.width = processor.context_width - int(self._selfhash)

    def score_token(self, before: Sequence[int], token: int, repeated: bool) -> WatermarkSign:
        """Green or not; not counted where the text has too few tokens before it."""
        deviation = (self._ratio * (1 - self._ratio)) ** 0.5
        if len(before) < self.width:
            return WatermarkSign(0.0, 0.0, self._ratio, deviation, counts=False)
        end = [*before[len(before) - self.width :], *([token] if self._selfhash else [])]
        greens = self.processor._get_greenlist_ids(_to_long_tensor(end, self.processor.rng.device))
        green = float((greens == token).any())
        return WatermarkSign(green, green, self._ratio, deviation)


class SynthIdScorer:
    """The mean of a token's g-values, and the mean weighted by depth."""

    def __init__(self, processor: SynthIDTextWatermarkLogitsProcessor) -> None:
        self._processor = processor
        self.width = processor.ngram_len - 1
        depth = len(processor.keys)
        weights = torch.linspace(10.0, 1.0, depth)
        self._weights, self._deviation = weights * depth / weights.sum(), (0.25 / depth) ** 0.5

    def score_token(self, before: Sequence[int], token: int, repeated: bool) -> WatermarkSign:
        """Its share of ones; not counted behind too few tokens, nor where the same tokens have decided before."""
        if len(before) < self.width:
            return WatermarkSign(0.0, 0.0, 0.5, self._deviation, counts=False)
        ngram = _to_long_tensor([*before[len(before) - self.width :], token], self._processor.device)
        values = self._processor.compute_g_values(cast("torch.LongTensor", ngram[None]))[0, 0].float().cpu()
        weighted = float((values * self._weights).mean())
        return WatermarkSign(float(values.mean()), weighted, 0.5, self._deviation, counts=not repeated)


def _to_long_tensor(tokens: Sequence[int], device: torch.device) -> torch.LongTensor:
    """As transformers' annotations want them."""
    return cast("torch.LongTensor", torch.tensor(tokens, device=device))


class WatermarkTextScorer:
    """One text as it is read, token by token."""

    def __init__(self, signs: WatermarkScorer) -> None:
        self._signs = signs
        self._ids: list[int] = []
        self._seen: set[tuple[int, ...]] = set()

    def score_next(self, token: int) -> WatermarkSign:
        """What the text's next token shows."""
        width = self._signs.width
        decides = tuple(self._ids[len(self._ids) - width :]) if len(self._ids) >= width else ()
        sign = self._signs.score_token(self._ids, token, decides in self._seen)
        if decides:
            self._seen.add(decides)
        self._ids.append(token)
        return sign
