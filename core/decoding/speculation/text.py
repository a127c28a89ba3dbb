"""The text so far, as a list for Python and as a tensor for models."""

from __future__ import annotations

from collections.abc import Iterable

import torch


class Text:
    """Ids of prompt and new tokens; the tensor grows in place."""

    def __init__(self, ids: list[int], device: torch.device) -> None:
        self.ids = list(ids)
        self._buffer = torch.tensor([[*ids, *([0] * 256)]], device=device)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tensor(self) -> torch.Tensor:
        """All ids, [1, T], a view."""
        return self._buffer[:, : len(self.ids)]

    def extend(self, tokens: Iterable[int]) -> None:
        """Append tokens."""
        new = list(tokens)
        end = len(self.ids) + len(new)
        while end > self._buffer.shape[1]:
            self._buffer = torch.cat([self._buffer, torch.zeros_like(self._buffer)], dim=1)
        self._buffer[0, len(self.ids) : end] = torch.tensor(new, device=self._buffer.device)
        self.ids += new

    def slice(self, begin: int) -> torch.Tensor:
        """Ids from `begin` on, [1, n]."""
        return self._buffer[:, begin : len(self.ids)]
