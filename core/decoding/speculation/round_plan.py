"""What a round may draft: how deep, how wide, drawn or taken from the top, and when to give up early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.decoding.speculation.tree import DraftTree
from core.decoding.speculation.verification import VerifiedPath


class DraftGate(Protocol):
    """Judges while drafting whether one more token is worth its cost."""

    def acceptance(self, drafter: int, probability: float, is_alternative: bool = False) -> float:
        """Chance that the target takes a token its drafter gave `probability`; `is_alternative`: not its first choice."""

    def should_branch(self) -> bool:
        """Whether a pass of the target is so dear that drafts are worth following behind unlikely tokens too."""

    def draw_count(self, probability: float, nodes: int) -> int:
        """How many children to draw at once behind a path of `probability`, where drafts branch with dice; 0 for none."""

    def should_extend(self, probabilities: Sequence[float], nodes: int) -> bool:
        """Whether one more draft pass pays, behind paths accepted with `probabilities`; the tree has `nodes` nodes."""

    def is_worthwhile(self, probability: float, nodes: int) -> bool:
        """Whether a node accepted with `probability` earns its place in the target's pass."""

    def child_count(
        self, probability: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool
    ) -> int:
        """The chain's next token and the leaves beside it, behind a path of `probability`; `probabilities` descend."""


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """One round's order to a drafter."""

    depth: int
    """Longest path."""
    widths: tuple[int, ...] = ()
    """Children of every node at depth 1, 2, …; the last one goes on for ever; empty: a chain."""
    is_sampled: bool = False
    """Children are drawn from q; otherwise the likeliest are taken."""
    keeps_q: bool = False
    """The verifier needs the distributions."""
    threshold: float = 0.0
    """Stop behind a token its drafter gave less."""
    gate: DraftGate | None = None
    allows_leaves: bool = False
    """The gate may put leaves beside a chain."""

    def width(self, depth: int) -> int:
        """Children at this depth, from 0 for those of the root."""
        return self.widths[min(depth, len(self.widths) - 1)] if self.widths else 1

    @property
    def is_chain(self) -> bool:
        """One child each, leaves apart."""
        return all(width == 1 for width in self.widths[: self.depth])


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
