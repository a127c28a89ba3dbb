"""Which drafters a round asks: all of them together, or the one that has earned most so far."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.decoding.speculation.length_schedule import DraftLengthSchedule, RoundResult
from core.decoding.speculation.verify_cost import VerifyCost
from core.events import ChoiceReason, DrafterChoice

_TRIALS = 2
"""Rounds that every drafter gets before any is judged."""
_HOPE = 0.3
"""How much better than seen a drafter may be that was seldom asked."""
_FORGET = 0.9
"""A text changes: what a drafter earned ten of its rounds ago counts a third."""
_FADE = 0.97
"""And that it was asked thirty rounds ago, too."""


@dataclass(frozen=True, slots=True)
class DrafterGroup:
    """Drafters that guess together, by their numbers, and how long their drafts should be."""

    drafters: tuple[int, ...]
    schedule: DraftLengthSchedule


class DrafterSelector(Protocol):
    """Asked before every round, told of its outcome."""

    def order(self) -> Sequence[DrafterGroup]:
        """Who is asked; the next group only where the one before it has nothing to say."""

    def rest(self) -> int:
        """Plain steps to be taken now without asking anybody: all pause; 0 where somebody is to be asked."""

    def choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """Why that group; `silent` were asked before it. None where there is no choice."""

    def learn(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """A round with drafted tokens ended."""

    def learn_plain(self, seconds: float, writing: float) -> None:
        """A plain step ended: its pass took so long, and its token's writing."""


class MergeAllDrafters:
    """All drafters in every round, their guesses merged."""

    def __init__(self, count: int, schedule: DraftLengthSchedule) -> None:
        self._group = DrafterGroup(tuple(range(count)), schedule)

    def order(self) -> Sequence[DrafterGroup]:
        """The one group."""
        return (self._group,)

    def rest(self) -> int:
        """Its pause."""
        return _rest([self._group])

    def choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """Nobody was left out."""
        return None

    def learn(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """Lengths learn."""
        group.schedule.learn(outcome)

    def learn_plain(self, seconds: float, writing: float) -> None:
        """Lengths learn."""
        self._group.schedule.learn_plain(seconds, writing)


@dataclass(slots=True)
class DrafterStats:
    """Of one drafter: tokens and what they cost, in plain tokens' time; older rounds count less."""

    tokens: float = 0.0
    cost: float = 0.0
    asked: int = 0
    lately: float = 0.0
    """How often it was asked, older rounds counting less."""

    @property
    def worth(self) -> float:
        """Speed with it ÷ plain decoding's; 0 before it was tried."""
        return self.tokens / self.cost if self.cost else 0.0

    def add(self, tokens: int, cost: float) -> None:
        """A round's."""
        self.tokens = _FORGET * self.tokens + tokens
        self.cost = _FORGET * self.cost + cost
        self.asked, self.lately = self.asked + 1, self.lately + 1


class BestDrafterSelector:
    """One drafter a round: the one that has earned most, or one that was asked so seldom that it may earn more
    (discounted UCB, Garivier and Moulines 2008).

    The clock says what rounds cost; with `shares` (the cost of each drafter's pass ÷ the target's) it is counted, for
    runs whose text must not follow the clock.
    """

    def __init__(
        self, schedules: Sequence[DraftLengthSchedule], cost: VerifyCost, shares: Sequence[float] | None
    ) -> None:
        self._groups = [DrafterGroup((number,), schedule) for number, schedule in enumerate(schedules)]
        self._cost = cost if shares is None else cost.rounded
        self._shares, self._one = shares, cost.one
        self._earned = [DrafterStats() for _ in schedules]

    def order(self) -> Sequence[DrafterGroup]:
        """The most promising first."""
        numbers = range(len(self._groups))
        return [self._groups[number] for number in sorted(numbers, key=lambda n: -self._promise(self._earned[n]))]

    def rest(self) -> int:
        """Until the first of them drafts again."""
        return _rest(self._groups)

    def choice(self, group: DrafterGroup, silent: Sequence[int]) -> DrafterChoice | None:
        """What each has earned, and why this one was asked."""
        (number,) = group.drafters
        worths, asked = [each.worth for each in self._earned], [each.asked for each in self._earned]
        best = max(range(len(worths)), key=worths.__getitem__)
        reason: ChoiceReason = "best" if number == best else "retried"
        if asked[number] < _TRIALS:
            reason = "untried"
        elif silent:
            reason = "silent"
        return DrafterChoice(number, reason, tuple(worths), tuple(asked), tuple(silent), self._shares is not None)

    def learn(self, group: DrafterGroup, outcome: RoundResult) -> None:
        """What the round brought, and what it cost."""
        (number,) = group.drafters
        group.schedule.learn(outcome)
        for each in self._earned:
            each.lately *= _FADE
        self._earned[number].add(len(outcome.verdict.path) + 1, self._price(number, outcome))

    def learn_plain(self, seconds: float, writing: float) -> None:
        """What a plain token takes, and every length learns of it."""
        self._one += 0.15 * (min(seconds, 2.5 * self._one) - self._one)
        for group in self._groups:
            group.schedule.learn_plain(seconds, writing)

    def _promise(self, earned: DrafterStats) -> float:
        if earned.asked < _TRIALS:
            return math.inf
        rounds = sum(each.lately for each in self._earned)
        return earned.worth * (1 + _HOPE * math.sqrt(math.log(max(rounds, 1.0)) / earned.lately))

    def _price(self, number: int, outcome: RoundResult) -> float:
        """In times of a plain token."""
        if self._shares is None:
            return (outcome.draft_seconds + outcome.verify_seconds + outcome.extra_seconds) / self._one
        return (outcome.passes + 1) * self._shares[number] + self._cost.ratio(len(outcome.tree))


def _rest(groups: Sequence[DrafterGroup]) -> int:
    """Steps in which all of them pause; these are theirs from now on."""
    steps = min(group.schedule.pause() for group in groups)
    for group in groups if steps else ():
        group.schedule.rest(steps)
    return steps
