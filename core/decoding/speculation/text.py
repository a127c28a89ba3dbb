"""The text so far, as a list for Python and as a tensor for models."""

from __future__ import annotations

from collections.abc import Sequence

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

    def extend(self, tokens: Sequence[int], tensor: torch.Tensor | None = None) -> None:
        """Append tokens; `tensor` [n or more] begins with the same, where they are on the device already."""
        begin, end = len(self.ids), len(self.ids) + len(tokens)
        while end > self._buffer.shape[1]:
            self._buffer = torch.cat([self._buffer, torch.zeros_like(self._buffer)], dim=1)
        if tensor is None:
            tensor = torch.tensor(tokens, device=self._buffer.device)
        self._buffer[0, begin:end] = tensor[: end - begin]
        self.ids += tokens

    def slice(self, begin: int) -> torch.Tensor:
        """Ids from `begin` on, [1, n]."""
        return self._buffer[:, begin : len(self.ids)]
