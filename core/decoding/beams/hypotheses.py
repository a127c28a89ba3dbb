"""The finished hypotheses of a search (or of one group), and when it may stop looking for better ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.decoding.beams.beam_node import BeamNode


class Hypotheses:
    """At most `capacity` finished hypotheses, best first, and the rule of `early_stopping`.

    early_stopping True: stop once `capacity` texts have ended. False: stop when the best running one, divided by its
    present length, is no better than the worst finished one. "never": the same with the most favourable length,
    which is `max_length` when length_penalty is above 0. (transformers 5, `_check_early_stop_heuristic`.)
    """

    def __init__(self, capacity: int, early_stopping: bool | str, length_penalty: float, max_length: int) -> None:
        self.items: list[BeamNode] = []
        self._capacity = capacity
        self._early_stopping = early_stopping
        self._length_penalty = length_penalty
        self._max_length = max_length
        self._improvable = True

    @property
    def is_full(self) -> bool:
        """Whether as many have ended as there are beams."""
        return len(self.items) >= self._capacity

    @property
    def is_done(self) -> bool:
        """Whether nothing better is to be expected."""
        return not self._improvable or (self._early_stopping is True and self.is_full)

    def add_finished(self, ended: Sequence[BeamNode]) -> None:
        """Keep the best of those known and those that ended now; the accepted ones get the fate `finished`."""
        if self.is_done:
            return
        best = sorted([*self.items, *ended], key=lambda node: -node.normalized)[: self._capacity]
        self.items = best
        for node in ended:
            if node in best:
                node.fate = "finished"

    def update_bound(self, score: float, normalized: float) -> None:
        """Tell the best open score, and the same divided by its present length; settles `is_done`."""
        if not self.is_full:
            return
        hopeful = self._early_stopping == "never" and self._length_penalty > 0
        attainable = score / length_factor(self._max_length, self._length_penalty) if hopeful else normalized
        self._improvable = self._improvable and attainable > self.items[-1].normalized


def length_factor(length: int, penalty: float) -> float:
    """length^penalty; infinity where a float cannot hold it."""
    try:
        return float(length**penalty)
    except OverflowError:
        return math.inf
