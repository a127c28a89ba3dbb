"""Recognize logits processors that ban tokens: the one rule for captured processors and for those of plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from decodescope.core.processors.base import Transform


def is_banned(scores: torch.Tensor) -> torch.Tensor:
    """Return where scores rule a token out: −inf, or the lowest number of 32 bits or of the scores' own type, which
    processors use as a mask.
    """
    limit = torch.finfo(torch.float32).min
    if scores.is_floating_point():
        limit = max(limit, torch.finfo(scores.dtype).min)
    return scores <= limit


def removes_tokens(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Return whether a processor rules out a token that was possible before."""
    given: object = after
    if not isinstance(given, torch.Tensor) or before.shape != after.shape or before.device != after.device:
        return False
    return bool((is_banned(after) & ~is_banned(before)).any())


def without_banned(scores: torch.Tensor) -> torch.Tensor:
    """Return scores of 32 bits, with −inf for tokens that are ruled out by the lowest number; unchanged where they are
    so already.
    """
    if scores.dtype is not torch.float32:
        scores = scores.masked_fill(is_banned(scores), -torch.inf).to(torch.float32)
    masked = scores == torch.finfo(torch.float32).min
    return scores.masked_fill(masked, -torch.inf) if bool(masked.any()) else scores


class BanObserver:
    """A processor of a plug-in that notes whether it has ever banned a token in its run."""

    def __init__(self, process: Transform) -> None:
        self._process = process
        self.bans = False

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the processed scores."""
        if self.bans:
            return self._process(ids, scores)
        before = scores.clone()  # it may modify its input
        after = self._process(ids, scores)
        self.bans = removes_tokens(before, after)
        return after
