"""Drafter selection per round: all drafters together, or the best one so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from decodescope.core.decoding.speculation.round_plan import DraftLengthSchedule, RoundResult
from decodescope.core.decoding.speculation.tree_passes import VerifyCost
from decodescope.core.events import ChoiceReason, DrafterChoice

_MIN_USES = 2
"""Number of rounds that every drafter gets first."""
_EXPLORATION = 0.3
"""Exploration bonus of a rarely used drafter."""
_DECAY = 0.9
"""Discount of a drafter's statistics per round of its own; after ten rounds they count a third."""
_USE_DECAY = 0.97
"""Discount of how often a drafter was used; after thirty rounds it counts a third."""


@dataclass(frozen=True, slots=True)
class DrafterGroup:
    """Drafters that propose together, by index, and their draft length schedule."""

    drafters: tuple[int, ...]
    schedule: DraftLengthSchedule


class DrafterSelector(Protocol):
    """Selects drafters before every round and learns from its outcome."""

    def ranked_groups(self) -> Sequence[DrafterGroup]:
        """Return the groups in order; the next one is used only if the one before it proposes nothing."""

    def take_pause(self) -> int:
        """Return the number of plain steps while all drafters pause; 0 if one is due."""

    def explain_choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """Return why this group was selected after `silent` ones proposed nothing; None without a choice."""

    def update(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """Update statistics after a round with drafted tokens."""

    def update_plain(self, seconds: float, writing: float) -> None:
        """Update statistics after a plain step: seconds of its pass and of emitting its token."""


class MergeAllDrafters:
    """Uses all drafters in every round and merges their proposals."""

    def __init__(self, count: int, schedule: DraftLengthSchedule) -> None:
        self._group = DrafterGroup(tuple(range(count)), schedule)

    def ranked_groups(self) -> Sequence[DrafterGroup]:
        """Return the only group."""
        return (self._group,)

    def take_pause(self) -> int:
        """Return the remaining pause."""
        return _consume_shared_pause([self._group])

    def explain_choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """Return None: all drafters are used."""
        return None

    def update(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """Update the schedule."""
        group.schedule.update(outcome)

    def update_plain(self, seconds: float, writing: float) -> None:
        """Update the schedule."""
        self._group.schedule.update_plain(seconds, writing)


@dataclass(slots=True)
class DrafterStats:
    """Statistics of one drafter: tokens and their cost in plain-token times, discounted."""

    tokens: float = 0.0
    cost: float = 0.0
    uses: int = 0
    recent_uses: float = 0.0
    """Discounted number of uses."""

    @property
    def speedup(self) -> float:
        """Speedup over plain decoding; 0 before it was tried."""
        return self.tokens / self.cost if self.cost else 0.0

    def add(self, tokens: int, cost: float) -> None:
        """Add a round."""
        self.tokens = _DECAY * self.tokens + tokens
        self.cost = _DECAY * self.cost + cost
        self.uses, self.recent_uses = self.uses + 1, self.recent_uses + 1


class BestDrafterSelector:
    """Selects one drafter per round: the best so far, or one used so rarely that it may be better (discounted UCB,
    Garivier and Moulines 2008).

    Costs are measured; with `draft_costs` (the cost of each drafter's pass ÷ the target's) they are modelled, for runs
    whose text must not depend on time.
    """

    def __init__(
        self, schedules: Sequence[DraftLengthSchedule], cost: VerifyCost, draft_costs: Sequence[float] | None
    ) -> None:
        self._groups = [DrafterGroup((number,), schedule) for number, schedule in enumerate(schedules)]
        self._cost = cost if draft_costs is None else cost.rounded
        self._draft_costs, self._plain_seconds = draft_costs, cost.single_pass_seconds
        self._stats = [DrafterStats() for _ in schedules]

    def ranked_groups(self) -> Sequence[DrafterGroup]:
        """Return groups by estimated speedup, best first."""
        numbers = range(len(self._groups))
        return [self._groups[number] for number in sorted(numbers, key=lambda n: -self._upper_bound(self._stats[n]))]

    def take_pause(self) -> int:
        """Return the steps until the first group drafts again."""
        return _consume_shared_pause(self._groups)

    def explain_choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """Return all drafters' speedups and why this one was selected."""
        (number,) = group.drafters
        worths, use_counts = [each.speedup for each in self._stats], [each.uses for each in self._stats]
        best = max(range(len(worths)), key=worths.__getitem__)
        reason: ChoiceReason = "best" if number == best else "retried"
        if use_counts[number] < _MIN_USES:
            reason = "untried"
        elif silent:
            reason = "silent"
        return DrafterChoice(
            number, reason, tuple(worths), tuple(use_counts), tuple(silent), self._draft_costs is not None
        )

    def update(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """Add the round's tokens and cost."""
        (number,) = group.drafters
        group.schedule.update(outcome)
        for each in self._stats:
            each.recent_uses *= _USE_DECAY
        self._stats[number].add(len(outcome.verified.path) + 1, self._round_cost(number, outcome))

    def update_plain(self, seconds: float, writing: float) -> None:
        """Update the time of a plain token and all schedules."""
        self._plain_seconds += 0.15 * (min(seconds, 2.5 * self._plain_seconds) - self._plain_seconds)
        for group in self._groups:
            group.schedule.update_plain(seconds, writing)

    def _upper_bound(self, stats: DrafterStats) -> float:
        if stats.uses < _MIN_USES:
            return math.inf
        rounds = sum(each.recent_uses for each in self._stats)
        return stats.speedup * (1 + _EXPLORATION * math.sqrt(math.log(max(rounds, 1.0)) / stats.recent_uses))

    def _round_cost(self, number: int, outcome: RoundResult) -> float:
        """Return the round's cost in plain-token times."""
        if self._draft_costs is None:
            return (outcome.draft_seconds + outcome.verify_seconds + outcome.overhead_seconds) / self._plain_seconds
        return (outcome.passes + 1) * self._draft_costs[number] + self._cost.ratio(len(outcome.tree))


def _consume_shared_pause(groups: Sequence[DrafterGroup]) -> int:
    """Return the number of steps in which all groups pause, and consume them."""
    steps = min(group.schedule.remaining_pause() for group in groups)
    for group in groups if steps else ():
        group.schedule.consume_pause(steps)
    return steps
