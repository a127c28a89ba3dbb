"""The gate of the automatic draft length: what one more token, level or branch promises, against what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from core.decoding.speculation.acceptance_stats import AcceptanceStats
from core.decoding.speculation.verify_cost import VerifyCost

TRIAL = 4
"""Tokens of the draft that ends a pause: one would tell neither what the next one costs nor how far a draft carries."""
_MOST_NODES = 31
_CAUTION = 1.5
"""What a node costs besides its row in the target's pass, as a factor: its own draft row, bookkeeping, its event."""
_LEAF = 3.0
"""How many times its price a token beside the likeliest one has to promise: it makes a chain a tree to be merged."""
_LITTLE = 1 / 8
"""A token of this chance has to be worth its place before drafts branch."""
_MOST_DRAWS = 3


class SpeedupGate:
    """Judges drafts while they are made, by what is known of their drafters and by the verify-cost curve."""

    def __init__(self, known: AcceptanceStats, cost: VerifyCost, draft_share: float | None, longest: int) -> None:
        """`draft_share`: what a draft pass should cost ÷ the target's, before any was timed."""
        self._known, self._cost, self._share = known, cost, draft_share or 1 / 8
        self._most = max(_MOST_NODES, longest)
        self._rises = _rises(cost, self._most)
        self.explores = False
        """A draft is made that does not seem worth it."""
        self.tries = False
        """A pause ends with a short chain."""

    def accept(self, drafter: int, probability: float, beside: bool = False) -> float:
        """Observed acceptance at about this probability, beginning with the probability itself."""
        return self._known.accept(drafter, probability, beside)

    def spreads(self) -> bool:
        """Where even a token of little chance, behind others, is worth its place; a trial is of a chain."""
        return not self.tries and self._pace * _CAUTION * self._node_price(TRIAL) < _LITTLE

    def draws(self, chance: float, nodes: int) -> int:
        """The first child for as often as levels have one that is taken, each further one for as often as such were."""
        count, hope = 0, chance * self._known.acceptance
        while count < _MOST_DRAWS and self.is_worth(hope, nodes + count):
            count, hope = count + 1, chance * self._known.later
        return count

    def goes_on(self, chances: Sequence[float], nodes: int) -> bool:
        """Compare what one more level brings with what its draft pass and its nodes cost at the present pace."""
        count = len(chances)
        if not count or nodes + count > self._most:
            return False
        if self.tries:
            return True
        price = self.draft_step + count * self._node_price(nodes)
        return sum(chances) * self._known.acceptance > self._pace * price

    def is_worth(self, chance: float, nodes: int) -> bool:
        """Compare what one more node brings with its place in the target's pass."""
        price = _CAUTION * self._node_price(nodes) + (0.0 if nodes else self.extra)
        return nodes < self._most and (self.explores or self.tries or chance > self._pace * price)

    def width(self, chance: float, probabilities: Sequence[float], drafter: int, nodes: int, sampled: bool) -> int:
        """One child goes on; further ones, likeliest first, have to be well worth their place as leaves.

        With dice one child is all: tried in random order, a leaf that is accepted first ends the path at once.
        A trial is of the chain alone.
        """
        if sampled or self.tries:
            return 1
        shares = [chance * self.accept(drafter, probability, True) / _LEAF for probability in probabilities[1:]]
        return 1 + sum(1 for share in shares if self.is_worth(share, nodes + 1))

    @property
    def one(self) -> float:
        """Seconds of a target pass over one token."""
        return self._known.verify_one or self._cost.one

    @property
    def draft_step(self) -> float:
        """Seconds of a draft pass behind the first."""
        return self._known.draft_step if self._known.draft_step is not None else self.one * self._share

    @property
    def extra(self) -> float:
        """Seconds that a round costs besides its passes."""
        return self._known.extra or 0.0

    @property
    def draft_first(self) -> float:
        """Seconds of a draft up to its first token."""
        return self._known.draft_first if self._known.draft_first is not None else self.one * self._share

    @property
    def _pace(self) -> float:
        """Tokens a second to beat: what rounds with drafts reach, at least that of plain decoding."""
        plain = 1 / self.one
        return max(plain, self._known.tokens / self._known.seconds) if self._known.seconds else plain

    def _node_price(self, nodes: int) -> float:
        """Seconds one more node adds to the target's pass."""
        return self.one * self._rises[min(nodes, self._most)]


@lru_cache(maxsize=8)
def _rises(cost: VerifyCost, most: int) -> tuple[float, ...]:
    """What each node up to `most` adds to the curve; the same for every run of a model."""
    return tuple(_rise(cost, nodes) for nodes in range(most + 1))


def _rise(cost: VerifyCost, nodes: int) -> float:
    """What one more node adds to the curve, averaged over the next few: a curve may have steps."""
    now = cost.ratio(nodes + 1)
    return min((cost.ratio(nodes + 1 + more) - now) / more for more in (1, 2, 4))
