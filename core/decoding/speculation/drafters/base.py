"""What the frame asks of a drafter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from core.decoding.speculation.round_plan import RoundPlan
from core.decoding.speculation.tree import Branch
from core.decoding.tensor_utils import growable_ids


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


class Drafter(Protocol):
    """Proposes tokens behind the text; keeps whatever memory it needs in step with it."""

    name: str
    parameter_count: int
    """Of its model; 0 when it has none."""
    first_token_seconds: float
    """How long the latest proposal took up to its first token, by the clock that prices passes."""

    def max_length(self, length: int) -> int:
        """Longest draft it could make behind a text of `length` tokens."""

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """Tokens behind the last one of `text`; an empty branch for no idea, None when the run was cancelled."""

    def commit(self, accepted: Sequence[int]) -> None:
        """These tokens behind the text were accepted: keep their memory, forget that of the others."""

    def finish(self, length: int) -> None:
        """The text ended with `length` tokens: forget what lies behind."""
