"""Which drafters a round asks: all of them together, or the one that has earned most so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.decoding.speculation.round_plan import DraftLengthSchedule, RoundResult
from core.decoding.speculation.tree_passes import VerifyCost
from core.events import ChoiceReason, DrafterChoice

_MIN_USES = 2
"""Rounds that every drafter gets before any is judged."""
_EXPLORATION = 0.3
"""How much better than seen a drafter may be that was seldom asked."""
_DECAY = 0.9
"""A text changes: what a drafter earned ten of its rounds ago counts a third."""
_USE_DECAY = 0.97
"""And that it was asked thirty rounds ago, too."""


@dataclass(frozen=True, slots=True)
class DrafterGroup:
    """Drafters that guess together, by their numbers, and how long their drafts should be."""

    drafters: tuple[int, ...]
    schedule: DraftLengthSchedule


class DrafterSelector(Protocol):
    """Asked before every round, told of its outcome."""

    def ranked_groups(self) -> Sequence[DrafterGroup]:
        """Who is asked; the next group only where the one before it has nothing to say."""

    def take_pause(self) -> int:
        """Plain steps to be taken now without asking anybody: all pause; 0 where somebody is to be asked."""

    def explain_choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """Why that group; `silent` were asked before it. None where there is no choice."""

    def update(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """A round with drafted tokens ended."""

    def update_plain(self, seconds: float, writing: float) -> None:
        """A plain step ended: its pass took so long, and its token's writing."""


class MergeAllDrafters:
    """All drafters in every round, their guesses merged."""

    def __init__(self, count: int, schedule: DraftLengthSchedule) -> None:
        self._group = DrafterGroup(tuple(range(count)), schedule)

    def ranked_groups(self) -> Sequence[DrafterGroup]:
        """The one group."""
        return (self._group,)

    def take_pause(self) -> int:
        """Its pause."""
        return _consume_shared_pause([self._group])

    def explain_choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """Nobody was left out."""
        return None

    def update(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """Lengths learn."""
        group.schedule.update(outcome)

    def update_plain(self, seconds: float, writing: float) -> None:
        """Lengths learn."""
        self._group.schedule.update_plain(seconds, writing)


@dataclass(slots=True)
class DrafterStats:
    """Of one drafter: tokens and what they cost, in plain tokens' time; older rounds count less."""

    tokens: float = 0.0
    cost: float = 0.0
    uses: int = 0
    recent_uses: float = 0.0
    """How often it was asked, older rounds counting less."""

    @property
    def speedup(self) -> float:
        """Speed with it ÷ plain decoding's; 0 before it was tried."""
        return self.tokens / self.cost if self.cost else 0.0

    def add(self, tokens: int, cost: float) -> None:
        """A round's."""
        self.tokens = _DECAY * self.tokens + tokens
        self.cost = _DECAY * self.cost + cost
        self.uses, self.recent_uses = self.uses + 1, self.recent_uses + 1


class BestDrafterSelector:
    """One drafter a round: the one that has earned most, or one that was asked so seldom that it may earn more
    (discounted UCB, Garivier and Moulines 2008).

    The clock says what rounds cost; with `draft_costs` (the cost of each drafter's pass ÷ the target's) it is counted, for
    runs whose text must not follow the clock.
    """

    def __init__(
        self, schedules: Sequence[DraftLengthSchedule], cost: VerifyCost, draft_costs: Sequence[float] | None
    ) -> None:
        self._groups = [DrafterGroup((number,), schedule) for number, schedule in enumerate(schedules)]
        self._cost = cost if draft_costs is None else cost.rounded
        self._draft_costs, self._plain_seconds = draft_costs, cost.single_pass_seconds
        self._stats = [DrafterStats() for _ in schedules]

    def ranked_groups(self) -> Sequence[DrafterGroup]:
        """The most promising first."""
        numbers = range(len(self._groups))
        return [self._groups[number] for number in sorted(numbers, key=lambda n: -self._upper_bound(self._stats[n]))]

    def take_pause(self) -> int:
        """Until the first of them drafts again."""
        return _consume_shared_pause(self._groups)

    def explain_choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """What each has earned, and why this one was asked."""
        (number,) = group.drafters
        worths, asked = [each.speedup for each in self._stats], [each.uses for each in self._stats]
        best = max(range(len(worths)), key=worths.__getitem__)
        reason: ChoiceReason = "best" if number == best else "retried"
        if asked[number] < _MIN_USES:
            reason = "untried"
        elif silent:
            reason = "silent"
        return DrafterChoice(number, reason, tuple(worths), tuple(asked), tuple(silent), self._draft_costs is not None)

    def update(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """What the round brought, and what it cost."""
        (number,) = group.drafters
        group.schedule.update(outcome)
        for each in self._stats:
            each.recent_uses *= _USE_DECAY
        self._stats[number].add(len(outcome.verified.path) + 1, self._round_cost(number, outcome))

    def update_plain(self, seconds: float, writing: float) -> None:
        """What a plain token takes, and every length learns of it."""
        self._plain_seconds += 0.15 * (min(seconds, 2.5 * self._plain_seconds) - self._plain_seconds)
        for group in self._groups:
            group.schedule.update_plain(seconds, writing)

    def _upper_bound(self, stats: DrafterStats) -> float:
        if stats.uses < _MIN_USES:
            return math.inf
        rounds = sum(each.recent_uses for each in self._stats)
        return stats.speedup * (1 + _EXPLORATION * math.sqrt(math.log(max(rounds, 1.0)) / stats.recent_uses))

    def _round_cost(self, number: int, outcome: RoundResult) -> float:
        """In times of a plain token."""
        if self._draft_costs is None:
            return (outcome.draft_seconds + outcome.verify_seconds + outcome.overhead_seconds) / self._plain_seconds
        return (outcome.passes + 1) * self._draft_costs[number] + self._cost.ratio(len(outcome.tree))


def _consume_shared_pause(groups: Sequence[DrafterGroup]) -> int:
    """Steps in which all of them pause; these are theirs from now on."""
    steps = min(group.schedule.remaining_pause() for group in groups)
    for group in groups if steps else ():
        group.schedule.consume_pause(steps)
    return steps
