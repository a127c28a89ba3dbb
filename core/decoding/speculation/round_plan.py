"""What a round may draft: how deep, how wide, drawn or taken from the top, and when to give up early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


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
