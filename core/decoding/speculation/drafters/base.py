"""The protocol of a drafter, and its entry in the registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import torch

from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.decoding.speculation.round_plan import RoundPlan
from decodescope.core.decoding.speculation.tree import Branch
from decodescope.core.decoding.tensor_utils import growable_ids
from decodescope.core.system.gpu import upload

if TYPE_CHECKING:
    from decodescope.core.decoding.run import DecodingRun


class SpeculationText:
    """Token ids of prompt and new tokens."""

    def __init__(self, ids: list[int], device: torch.device) -> None:
        self.ids = list(ids)
        self._tensor = growable_ids(ids, 1, device)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tensor(self) -> torch.Tensor:
        """All ids, [1, T], as a view."""
        return self._tensor.tensor

    @property
    def last(self) -> torch.Tensor:
        """The last id, [1, 1], as a view."""
        return self._tensor.last

    def extend(self, tokens: Sequence[int], tensor: torch.Tensor | None = None) -> None:
        """Append tokens; `tensor` [n or more] begins with the same ids, if they are already on the device."""
        if tensor is None:
            tensor = upload(tokens, self.tensor.device)
        fitting = tensor if len(tensor) == len(tokens) else tensor[: len(tokens)]
        self._tensor.append(fitting.unsqueeze(0))
        self.ids += tokens

    def ids_from(self, begin: int) -> torch.Tensor:
        """Return the ids from `begin` on, [1, n]."""
        return self.tensor[:, begin:]


class Drafter(Protocol):
    """Proposes tokens after the text and keeps its cache in step with it."""

    name: str
    parameter_count: int
    """Number of its model's parameters; 0 without a model."""

    @property
    def first_token_seconds(self) -> float:
        """Seconds of the latest proposal up to its first token, by the clock used for pass costs."""

    def max_length(self, length: int) -> int:
        """Return the maximum draft length after a text of `length` tokens."""

    def propose(self, text: SpeculationText, plan: RoundPlan) -> Branch | None:
        """Propose tokens after the last one of `text`; an empty branch if there is no proposal, None if the run was
        cancelled.
        """

    def commit(self, accepted: Sequence[int]) -> None:
        """Keep cached tokens after the text that were accepted, and drop the others."""

    def finish(self, length: int) -> None:
        """Finish the run: the text has `length` tokens; drop what follows."""


@plain(frozen=True)
class DrafterKind:
    """A way to draft tokens; one per file of `core/decoding/speculation/drafters/`."""

    name: str
    build: Callable[[DecodingRun, int], Drafter]
    """(run, number among the run's drafters) → a new drafter."""
    combines: bool = False
    """Whether it can propose beside other drafters (option `extra_drafters`): it drafts chains, from the text alone."""
    aliases: tuple[str, ...] = ()
    order: int = 100
