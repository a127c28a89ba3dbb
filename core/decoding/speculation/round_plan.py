"""Plan of a round's draft: depth, widths, sampling, and when to stop early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from decodescope.core.decoding.speculation.tree import DraftTree
from decodescope.core.decoding.speculation.verification import VerifiedPath


class DraftGate(Protocol):
    """Decides during drafting whether one more token is worth its cost."""

    def acceptance(self, drafter: int, probability: float, is_alternative: bool = False) -> float:
        """Return the probability that the target accepts a token with draft `probability`; `is_alternative`: not the
        drafter's first choice.
        """

    def should_branch(self) -> bool:
        """Return whether a target pass is so expensive that continuing after unlikely tokens pays off too."""

    def draw_count(self, probability: float, nodes: int) -> int:
        """Return the number of children to draw after a path of probability `probability` when sampling; 0 for none."""

    def should_extend(self, probabilities: Sequence[float], nodes: int) -> bool:
        """Return whether one more draft pass pays off after paths accepted with `probabilities`; the tree has `nodes`
        nodes.
        """

    def is_worthwhile(self, probability: float, nodes: int) -> bool:
        """Return whether a node accepted with probability `probability` is worth its place in the target's pass."""

    def child_count(
        self, probability: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool
    ) -> int:
        """Return the number of children after a path of probability `probability`: the chain's next token and leaves;
        `probabilities` descend.
        """


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """One round's instructions to a drafter."""

    depth: int
    """Maximum path length."""
    widths: tuple[int, ...] = ()
    """Number of children per node at depth 1, 2, …; the last value repeats; empty: a chain."""
    is_sampled: bool = False
    """Whether children are sampled from q; otherwise the most likely are taken."""
    keeps_q: bool = False
    """Whether the verifier needs the distributions."""
    threshold: float = 0.0
    """Stop after a token with a lower draft probability."""
    gate: DraftGate | None = None
    allows_leaves: bool = False
    """Whether the gate may add leaves to a chain."""

    def width(self, depth: int) -> int:
        """Return the number of children at this depth, from 0 for those of the root."""
        return self.widths[min(depth, len(self.widths) - 1)] if self.widths else 1

    @property
    def is_chain(self) -> bool:
        """Whether each node has one child, apart from leaves."""
        return all(width == 1 for width in self.widths[: self.depth])


DEFAULT_LENGTH = 5


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The result of a round, as input of a schedule."""

    tree: DraftTree
    verified: VerifiedPath
    passes: int
    """Number of draft passes."""
    draft_seconds: float
    """Measured by the clock used for pass costs, like the other times."""
    verify_seconds: float
    first_token_seconds: float = 0.0
    """Part of the draft time before its first token."""
    overhead_seconds: float = 0.0
    """Overhead of the round."""
    tokens: int = 0
    """Number of tokens emitted; the time for that is part of `overhead_seconds`."""


class DraftLengthSchedule(Protocol):
    """Sets the draft length before every round and learns from its outcome."""

    gate: DraftGate | None

    def length(self) -> int:
        """Return the maximum path length to draft; 0 for a plain step."""

    def remaining_pause(self) -> int:
        """Return the number of coming plain steps for which `length` will return 0."""

    def consume_pause(self, steps: int) -> None:
        """Consume `steps` of a pause without calls of `length`."""

    def update(self, outcome: RoundResult) -> None:
        """Update from a round with drafted tokens."""

    def update_plain(self, seconds: float, writing: float) -> None:
        """Update from a plain step: seconds of its pass and of emitting its token."""


class ConstantLength:
    """A constant length."""

    gate: DraftGate | None = None

    def __init__(self, length: int) -> None:
        self._length = length

    def length(self) -> int:
        """Return the constant."""
        return self._length

    def remaining_pause(self) -> int:
        """Return 0: it never pauses."""
        return 0

    def consume_pause(self, steps: int) -> None:
        """Do nothing: it never pauses."""

    def update(self, outcome: RoundResult) -> None:
        """Do nothing."""

    def update_plain(self, seconds: float, writing: float) -> None:
        """Do nothing."""


class HeuristicLength:
    """Increases the length by 2 after a fully accepted draft, else decreases it by 1, but not below 1.

    `memory` keeps the length between runs (`heuristic`); without it every run starts from `first`
    (`heuristic_transient`).
    """

    gate: DraftGate | None = None

    def __init__(self, first: int, memory: dict[str, int] | None = None, key: str = "") -> None:
        self._memory = memory if memory is not None else {}
        self._key = key
        self._memory.setdefault(key, first)

    def length(self) -> int:
        """Return the current length."""
        return self._memory[self._key]

    def remaining_pause(self) -> int:
        """Return 0: it always drafts at least one token."""
        return 0

    def consume_pause(self, steps: int) -> None:
        """Do nothing: it never pauses."""

    def update(self, outcome: RoundResult) -> None:
        """Increase or decrease the length."""
        change = 2 if outcome.verified.is_bonus else -1
        self._memory[self._key] = max(1, self.length() + change)

    def update_plain(self, seconds: float, writing: float) -> None:
        """Do nothing: a plain step has no draft."""
