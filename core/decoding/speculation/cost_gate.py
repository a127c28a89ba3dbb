"""The gate of the automatic draft length: what one more token, level or branch promises, against what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from core.decoding.speculation.acceptance_stats import AcceptanceStats
from core.decoding.speculation.verify_cost import VerifyCost

TRIAL_LENGTH = 4
"""Tokens of the draft that ends a pause: one would tell neither what the next one costs nor how far a draft carries."""
_MAX_NODES = 31
_NODE_COST_FACTOR = 1.5
"""What a node costs besides its row in the target's pass, as a factor: its own draft row, bookkeeping, its event."""
_LEAF_FACTOR = 3.0
"""How many times its price a token beside the likeliest one has to promise: it makes a chain a tree to be merged."""
_BRANCH_PROBABILITY = 1 / 8
"""A token of this chance has to be worth its place before drafts branch."""
_MAX_DRAWS = 3


class SpeedupGate:
    """Judges drafts while they are made, by what is known of their drafters and by the verify-cost curve."""

    def __init__(self, stats: AcceptanceStats, cost: VerifyCost, draft_cost: float | None, max_length: int) -> None:
        """`draft_cost`: what a draft pass should cost ÷ the target's, before any was timed."""
        self._stats, self._cost, self._draft_cost = stats, cost, draft_cost or 1 / 8
        self._max_nodes = max(_MAX_NODES, max_length)
        self._node_costs = _compute_node_costs(cost, self._max_nodes)
        self.is_exploring = False
        """A draft is made that does not seem worth it."""
        self.is_trial = False
        """A pause ends with a short chain."""

    def acceptance(self, drafter: int, probability: float, is_alternative: bool = False) -> float:
        """Observed acceptance at about this probability, beginning with the probability itself."""
        return self._stats.acceptance_of(drafter, probability, is_alternative)

    def should_branch(self) -> bool:
        """Where even a token of little chance, behind others, is worth its place; a trial is of a chain."""
        return (
            not self.is_trial
            and self._rate_to_beat * _NODE_COST_FACTOR * self._node_seconds(TRIAL_LENGTH) < _BRANCH_PROBABILITY
        )

    def draw_count(self, probability: float, nodes: int) -> int:
        """The first child for as often as levels have one that is taken, each further one for as often as such were."""
        count, hope = 0, probability * self._stats.acceptance
        while count < _MAX_DRAWS and self.is_worthwhile(hope, nodes + count):
            count, hope = count + 1, probability * self._stats.later_acceptance
        return count

    def should_extend(self, probabilities: Sequence[float], nodes: int) -> bool:
        """Compare what one more level brings with what its draft pass and its nodes cost at the present pace."""
        count = len(probabilities)
        if not count or nodes + count > self._max_nodes:
            return False
        if self.is_trial:
            return True
        price = self.draft_pass_seconds + count * self._node_seconds(nodes)
        return sum(probabilities) * self._stats.acceptance > self._rate_to_beat * price

    def is_worthwhile(self, probability: float, nodes: int) -> bool:
        """Compare what one more node brings with its place in the target's pass."""
        price = _NODE_COST_FACTOR * self._node_seconds(nodes) + (0.0 if nodes else self.overhead_seconds)
        return nodes < self._max_nodes and (
            self.is_exploring or self.is_trial or probability > self._rate_to_beat * price
        )

    def child_count(
        self, probability: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool
    ) -> int:
        """One child goes on; further ones, likeliest first, have to be well worth their place as leaves.

        With dice one child is all: tried in random order, a leaf that is accepted first ends the path at once.
        A trial is of the chain alone.
        """
        if sampled or self.is_trial:
            return 1
        shares = [
            probability * self.acceptance(drafter, probability, True) / _LEAF_FACTOR
            for probability in probabilities[1:]
        ]
        return 1 + sum(1 for share in shares if self.is_worthwhile(share, nodes + 1))

    @property
    def single_pass_seconds(self) -> float:
        """Seconds of a target pass over one token."""
        return self._stats.single_pass_seconds or self._cost.single_pass_seconds

    @property
    def draft_pass_seconds(self) -> float:
        """Seconds of a draft pass behind the first."""
        return (
            self._stats.draft_pass_seconds
            if self._stats.draft_pass_seconds is not None
            else self.single_pass_seconds * self._draft_cost
        )

    @property
    def overhead_seconds(self) -> float:
        """Seconds that a round costs besides its passes."""
        return self._stats.overhead_seconds or 0.0

    @property
    def first_token_seconds(self) -> float:
        """Seconds of a draft up to its first token."""
        return (
            self._stats.first_token_seconds
            if self._stats.first_token_seconds is not None
            else self.single_pass_seconds * self._draft_cost
        )

    @property
    def _rate_to_beat(self) -> float:
        """Tokens a second to beat: what rounds with drafts reach, at least that of plain decoding."""
        plain = 1 / self.single_pass_seconds
        return max(plain, self._stats.tokens / self._stats.seconds) if self._stats.seconds else plain

    def _node_seconds(self, nodes: int) -> float:
        """Seconds one more node adds to the target's pass."""
        return self.single_pass_seconds * self._node_costs[min(nodes, self._max_nodes)]


@lru_cache(maxsize=8)
def _compute_node_costs(cost: VerifyCost, max_nodes: int) -> tuple[float, ...]:
    """What each node up to `max_nodes` adds to the curve; the same for every run of a model."""
    return tuple(_node_cost(cost, nodes) for nodes in range(max_nodes + 1))


def _node_cost(cost: VerifyCost, nodes: int) -> float:
    """What one more node adds to the curve, averaged over the next few: a curve may have steps."""
    now = cost.ratio(nodes + 1)
    return min((cost.ratio(nodes + 1 + more) - now) / more for more in (1, 2, 4))
