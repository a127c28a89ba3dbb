"""No end token before a length: what two stages do, as transformers' own do in five small operations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class MinLengthBan:
    """(ids [B, T], scores [B, V]) → scores: the end tokens are ruled out until T is `length`."""

    def __init__(self, length: int, ends: torch.Tensor | None) -> None:
        """`ends`: ids; those that the scores have no place for are never chosen anyway."""
        import torch

        self._length, self._ends = length, torch.as_tensor([] if ends is None else ends, dtype=torch.long).reshape(-1)
        self._known = self._ends[:0]
        """Those that scores of `_width` have a place for, where the scores are."""
        self._width = 0

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """What came in stays as it is; behind that length it is what comes out."""
        if ids.shape[-1] >= self._length:
            return scores
        if self._width != scores.shape[-1] or self._known.device != scores.device:
            self._width = scores.shape[-1]
            there = (self._ends >= 0) & (self._ends < self._width)  # an index of -1 would be the last token
            self._known = self._ends[there].to(scores.device)
        return scores.index_fill(-1, self._known, -math.inf)
