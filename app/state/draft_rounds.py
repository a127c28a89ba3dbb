"""Rounds of speculative decoding: which round wrote which token, and how many drafts were accepted. No Qt in here."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decodescope import core
from decodescope.app.state.incremental import IncrementalFold

if TYPE_CHECKING:
    from decodescope.core.events import DraftNode, DraftRound, Event


@dataclass(slots=True)
class AcceptanceCount:
    """Numbers of examined and accepted draft tokens (or rounds)."""

    accepted: int = 0
    examined: int = 0

    @property
    def rate(self) -> float | None:
        """Accepted ÷ examined; None before anything was examined."""
        return self.accepted / self.examined if self.examined else None


class DraftRounds(IncrementalFold):
    """All rounds of a run; statistics are updated with every round, so that reading them is cheap."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[DraftRound] = []
        self.curve: tuple[tuple[int, float], ...] = ()
        """(tokens verified at once, cost of that pass ÷ cost of a single-token pass)."""
        self._steps: list[int] = []
        self._positions: list[AcceptanceCount] = []
        self._drafters: dict[int, AcceptanceCount] = {}
        self._total = AcceptanceCount()

    def __len__(self) -> int:
        return len(self.rounds)

    def append(self, events: Iterable[Event]) -> None:
        """Process the events of speculative decoding."""
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
        """Return how many rounds had started when the text had `tokens` tokens."""
        return bisect_left(self._steps, tokens)

    def round_of(self, token: int) -> int | None:
        """Return the round that wrote a token; None if no round did."""
        number = bisect_right(self._steps, token) - 1
        if number < 0 or token >= self._steps[number] + written_count(self.rounds[number]):
            return None
        return number

    def acceptance_by_depth(self, max_depth: int = 12) -> list[tuple[int, float]]:
        """Return (depth, acceptance rate of the rounds that examined that depth), up to the first depth that none
        examined.
        """
        found = []
        for depth, tally in enumerate(self._positions[:max_depth], 1):
            if tally.rate is None:
                break
            found.append((depth, tally.rate))
        return found

    def counts_by_drafter(self, count: int) -> list[tuple[int, int]]:
        """Return (accepted, examined) tokens of each of `count` drafters; a token proposed by two counts for both."""
        tallies = [self._drafters.get(number, AcceptanceCount()) for number in range(count)]
        return [(tally.accepted, tally.examined) for tally in tallies]

    def acceptance_rate(self) -> float | None:
        """Return accepted ÷ examined draft tokens."""
        return self._total.rate


def written_count(entry: DraftRound) -> int:
    """Return the number of tokens that the round added to the text."""
    return len(entry.accepted) + (entry.extra_kind != "none")


def proposers(node: DraftNode) -> tuple[int, ...]:
    """Return the numbers of all drafters that proposed the node."""
    return node.proposers or (node.drafter,)
