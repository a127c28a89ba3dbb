"""What the frame asks of a drafter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.decoding.speculation.round_plan import RoundPlan
from core.decoding.speculation.speculation_text import SpeculationText
from core.decoding.speculation.tree import Branch


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
