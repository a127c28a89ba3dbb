"""How long a draft should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from core.decoding.speculation.round_plan import DraftGate
from core.decoding.speculation.tree import DraftTree
from core.decoding.speculation.verification import VerifiedPath

DEFAULT_LENGTH = 5


@dataclass(frozen=True, slots=True)
class RoundResult:
    """A round as a schedule sees it."""

    tree: DraftTree
    verified: VerifiedPath
    passes: int
    """Draft passes it took."""
    draft_seconds: float
    """By the clock that prices passes, as the other times."""
    verify_seconds: float
    first_token_seconds: float = 0.0
    """Of the draft's: what passed before its first token."""
    overhead_seconds: float = 0.0
    """What the round cost besides."""
    tokens: int = 0
    """How many it wrote; their writing is part of `overhead_seconds`."""


class DraftLengthSchedule(Protocol):
    """Asked for a length before every round, told of the outcome after it."""

    gate: DraftGate | None

    def length(self) -> int:
        """Longest path to draft now; 0 for a plain step."""

    def remaining_pause(self) -> int:
        """Plain steps to come for which `length` is going to say 0."""

    def consume_pause(self, steps: int) -> None:
        """So many steps of a pause are taken without asking for a length."""

    def update(self, outcome: RoundResult) -> None:
        """A round with drafted tokens ended."""

    def update_plain(self, seconds: float, writing: float) -> None:
        """A plain step ended: its pass took so long, and its token's writing."""


class ConstantLength:
    """Always the same."""

    gate: DraftGate | None = None

    def __init__(self, length: int) -> None:
        self._length = length

    def length(self) -> int:
        """The number set."""
        return self._length

    def remaining_pause(self) -> int:
        """It pauses never."""
        return 0

    def consume_pause(self, steps: int) -> None:
        """Never."""

    def update(self, outcome: RoundResult) -> None:
        """Learns nothing."""

    def update_plain(self, seconds: float, writing: float) -> None:
        """Learns nothing."""


class HeuristicLength:
    """2 more after a draft that was accepted whole, else 1 less, never below 1.

    `memory` keeps the length between runs (`heuristic`); without it every run starts anew (`heuristic_transient`).
    """

    gate: DraftGate | None = None

    def __init__(self, first: int, memory: dict[str, int] | None = None, key: str = "") -> None:
        self._memory = memory if memory is not None else {}
        self._key = key
        self._memory.setdefault(key, first)

    def length(self) -> int:
        """The present length."""
        return self._memory[self._key]

    def remaining_pause(self) -> int:
        """It drafts always, if only a token."""
        return 0

    def consume_pause(self, steps: int) -> None:
        """Never."""

    def update(self, outcome: RoundResult) -> None:
        """Grow or shrink."""
        change = 2 if outcome.verified.is_bonus else -1
        self._memory[self._key] = max(1, self.length() + change)

    def update_plain(self, seconds: float, writing: float) -> None:
        """A plain step says nothing of drafts."""
