"""The finished hypotheses of a search (or of one group), and when it may stop looking for better ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.decoding.beams.beam_node import BeamNode


class Hypotheses:
    """At most `capacity` finished hypotheses, best first, and the rule of `early_stopping`.

    early_stopping True: stop once `capacity` texts have ended. False: stop when the best running one, divided by its
    present length, is no better than the worst finished one. "never": the same with the most favourable length,
    which is `longest` when length_penalty is above 0. (transformers 5, `_check_early_stop_heuristic`.)
    """

    def __init__(self, capacity: int, early_stopping: bool | str, length_penalty: float, longest: int) -> None:
        self.items: list[BeamNode] = []
        self._capacity = capacity
        self._early = early_stopping
        self._penalty = length_penalty
        self._longest = longest
        self._improvable = True

    @property
    def full(self) -> bool:
        """Whether as many have ended as there are beams."""
        return len(self.items) >= self._capacity

    @property
    def done(self) -> bool:
        """Whether nothing better is to be expected."""
        return not self._improvable or (self._early is True and self.full)

    def offer(self, ended: Sequence[BeamNode]) -> None:
        """Keep the best of those known and those that ended now; the accepted ones get the fate `finished`."""
        if self.done:
            return
        merged = sorted([*self.items, *ended], key=lambda node: -node.normalized)[: self._capacity]
        self.items = merged
        for node in ended:
            if node in merged:
                node.fate = "finished"

    def look_ahead(self, score: float, normalized: float) -> None:
        """Tell the best open score, and the same divided by its present length; settles `done`."""
        if not self.full:
            return
        hopeful = self._early == "never" and self._penalty > 0
        attainable = score / length_factor(self._longest, self._penalty) if hopeful else normalized
        self._improvable = self._improvable and attainable > self.items[-1].normalized


def length_factor(length: int, penalty: float) -> float:
    """length^penalty; infinity where a float cannot hold it."""
    try:
        return float(length**penalty)
    except OverflowError:
        return math.inf
