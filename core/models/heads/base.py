"""What drafting asks of heads that read hidden states, whatever checkpoint they come from."""

from __future__ import annotations

from typing import Protocol

import torch
from transformers.cache_utils import Cache


class PredictionHeads(Protocol):
    """One small decoder layer or several, in the model's own width, embedding and output head shared with it."""

    count: int
    """How many follow one another; a single one is used again and again on its own guesses."""
    weight_count: int
    """Without what is the model's."""
    readable_ids: int
    """Token ids that their embedding has a row for."""
    windows: tuple[int | None, ...]
    """Tokens that each one's attention sees; None for all."""

    def read(
        self, head: int, ids: torch.Tensor, states: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor,
        cache: Cache,
    ) -> torch.Tensor:  # fmt: skip
        """States [1, n, D] behind tokens ids [1, n], each beside the state [1, n, D] of the token before it.

        `mask` [1, 1, n, rows + n] is additive; the cache's layer `head` grows by n rows.
        """

    def scores(self, states: torch.Tensor) -> torch.Tensor:
        """Float32 logits [n, V] of states [1, n, D]."""
