"""The text so far, as a list for Python and as a tensor for models."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core.decoding.growable_tensor import growable_ids


class SpeculationText:
    """Ids of prompt and new tokens."""

    def __init__(self, ids: list[int], device: torch.device) -> None:
        self.ids = list(ids)
        self._tensor = growable_ids(ids, 1, device)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tensor(self) -> torch.Tensor:
        """All ids, [1, T], a view."""
        return self._tensor.tensor

    @property
    def last(self) -> torch.Tensor:
        """The last id, [1, 1], a view."""
        return self._tensor.last

    def extend(self, tokens: Sequence[int], tensor: torch.Tensor | None = None) -> None:
        """Append tokens; `tensor` [n or more] begins with the same, where they are on the device already."""
        if tensor is None:
            tensor = torch.tensor(tokens, device=self.tensor.device)
        fitting = tensor if len(tensor) == len(tokens) else tensor[: len(tokens)]
        self._tensor.append(fitting.unsqueeze(0))
        self.ids += tokens

    def ids_from(self, begin: int) -> torch.Tensor:
        """Ids from `begin` on, [1, n]."""
        return self.tensor[:, begin:]
