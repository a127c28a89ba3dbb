"""Rounds of speculation: which there were, which wrote what, how many guesses were kept. No Qt in here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import core
from app.state.incremental import IncrementalFold

if TYPE_CHECKING:
    from core.events import DraftNode, DraftRound, Event


@dataclass(slots=True)
class AcceptanceCount:
    """Drafted tokens (or rounds) that were looked at, and those of them that were kept."""

    accepted: int = 0
    examined: int = 0

    @property
    def rate(self) -> float | None:
        """Kept ÷ examined; None before anything was examined."""
        return self.accepted / self.examined if self.examined else None


class DraftRounds(IncrementalFold):
    """All rounds of a run, as they come in; figures grow with them, so that asking costs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[DraftRound] = []
        self.curve: tuple[tuple[int, float], ...] = ()
        """(tokens checked at once, cost of that pass ÷ cost of one)."""
        self._steps: list[int] = []
        self._positions: list[AcceptanceCount] = []
        self._drafters: dict[int, AcceptanceCount] = {}
        self._total = AcceptanceCount()

    def __len__(self) -> int:
        return len(self.rounds)

    def append(self, events: Iterable[Event]) -> None:
        """Take what concerns speculation."""
        for event in events:
            if isinstance(event, core.events.DraftRound):
                self._add(event)
            elif isinstance(event, core.events.CostCurve):
                self.curve = event.curve

    def _add(self, entry: DraftRound) -> None:
        self.rounds.append(entry)
        self._steps.append(entry.step)
        examined = [node for node in entry.nodes if node.fate != "unreached"]
        self._total.accepted += len(entry.accepted)
        self._total.examined += len(examined)
        for depth in {node.depth for node in examined}:
            while len(self._positions) < depth:
                self._positions.append(AcceptanceCount())
            self._positions[depth - 1].examined += 1
            self._positions[depth - 1].accepted += len(entry.accepted) >= depth
        for node in examined:
            for number in proposers(node):
                tally = self._drafters.setdefault(number, AcceptanceCount())
                tally.examined += 1
                tally.accepted += node.fate == "accepted"

    def count_started(self, tokens: int) -> int:
        """How many rounds had begun when the text had `tokens` tokens."""
        return bisect_left(self._steps, tokens)

    def round_of(self, token: int) -> int | None:
        """Which round wrote that token; None for one that no round wrote."""
        number = bisect_right(self._steps, token) - 1
        if number < 0 or token >= self._steps[number] + written_count(self.rounds[number]):
            return None
        return number

    def acceptance_by_depth(self, max_depth: int = 12) -> list[tuple[int, float]]:
        """(depth, share accepted of the rounds that looked at that depth), up to the first that none looked at."""
        found = []
        for depth, tally in enumerate(self._positions[:max_depth], 1):
            if tally.rate is None:
                break
            found.append((depth, tally.rate))
        return found

    def counts_by_drafter(self, count: int) -> list[tuple[int, int]]:
        """(accepted, examined) tokens of each of `count` drafters; what two proposed counts for both."""
        tallies = [self._drafters.get(number, AcceptanceCount()) for number in range(count)]
        return [(tally.accepted, tally.examined) for tally in tallies]

    def acceptance_rate(self) -> float | None:
        """Accepted ÷ examined drafted tokens."""
        return self._total.rate


def written_count(entry: DraftRound) -> int:
    """Tokens that became text in the round."""
    return len(entry.accepted) + (entry.extra_kind != "none")


def proposers(node: DraftNode) -> tuple[int, ...]:
    """Everyone who proposed the node, by the drafters' numbers."""
    return node.proposers or (node.drafter,)
