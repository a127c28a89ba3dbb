"""The beams of one group (or of the whole search without groups): which continue, which end, and when the group is
done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from decodescope.core.decoding.beams.beam_node import BeamNode
from decodescope.core.decoding.beams.constraint_banks import ConstraintBanks
from decodescope.core.decoding.stopping import StopReason


class Hypotheses:
    """At most `capacity` finished hypotheses, best first, with the rule of `early_stopping`.

    early_stopping True: stop once `capacity` texts have ended. False: stop when the best running hypothesis, divided by
    its current length, is no better than the worst finished one. "never": the same with the most favourable length,
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
        """Whether as many hypotheses have ended as there are beams."""
        return len(self.items) >= self._capacity

    @property
    def is_done(self) -> bool:
        """Whether no better hypothesis can be expected."""
        return not self._improvable or (self._early_stopping is True and self.is_full)

    def add_finished(self, ended: Sequence[BeamNode]) -> None:
        """Keep the best of the known and the newly ended hypotheses; accepted ones get the fate `finished`."""
        if self.is_done:
            return
        best = sorted([*self.items, *ended], key=lambda node: -node.normalized)[: self._capacity]
        self.items = best
        for node in ended:
            if node in best:
                node.fate = "finished"

    def update_bound(self, score: float, normalized: float) -> None:
        """Update `is_done` from the best running score and the same score divided by its current length."""
        if not self.is_full:
            return
        hopeful = self._early_stopping == "never" and self._length_penalty > 0
        attainable = score / length_factor(self._max_length, self._length_penalty) if hopeful else normalized
        self._improvable = self._improvable and attainable > self.items[-1].normalized


def length_factor(length: int, penalty: float) -> float:
    """Return length^penalty, or infinity on overflow."""
    try:
        return float(length**penalty)
    except OverflowError:
        return math.inf


DEAD = -1e8
"""Treat scores below this as banned: some processors write the lowest float instead of -inf."""


@dataclass(frozen=True, slots=True)
class BeamSettings:
    """Settings of one group's search."""

    width: int
    """Number of beams in the group."""
    candidate_count: int
    """Continuations considered in each step: max(2, 1 + number of end tokens) · width."""
    early_stopping: bool | str
    length_penalty: float
    max_length: int
    ended_beams_count: bool


class BeamGroup:
    """Running hypotheses in adjacent rows of the batch, and the finished ones."""

    def __init__(self, number: int, settings: BeamSettings, root: BeamNode, banks: ConstraintBanks | None) -> None:
        self.number = number
        self.beams = [root]
        self.start = 0
        self.hypotheses = Hypotheses(
            settings.width, settings.early_stopping, settings.length_penalty, settings.max_length
        )
        self.done = False
        self._settings, self._banks = settings, banks
        self._running_at_end: list[BeamNode] = []

    @property
    def rows(self) -> slice:
        """The group's rows in the batch."""
        return slice(self.start, self.start + len(self.beams))

    def decide_fates(self, regular: list[BeamNode], extra: list[BeamNode], limit: StopReason | None) -> list[BeamNode]:
        """Decide the fate of a step's nodes.

        Return the nodes selected to continue, even if a limit ends them.
        """
        continued, ended = self._select(regular, extra, limit is not None)
        if limit is not None:
            self._running_at_end = self._cut_off(continued, limit)
            self._cut_off(ended, limit)  # constraints may end other nodes than those that continue
        contenders = regular if self._settings.ended_beams_count else continued
        self.hypotheses.add_finished(ended)
        if contenders:
            leader = max(contenders, key=lambda node: node.score)
            self.hypotheses.update_bound(leader.score, leader.normalized)
        self.done = self.hypotheses.is_done or limit is not None or not continued
        if limit is None:
            for node in continued:
                node.fate = "early_stopped" if self.done else "kept"
            self._running_at_end = [] if self.done else continued
        self.beams = [] if self.done else continued
        return continued

    def _select(
        self, regular: list[BeamNode], extra: list[BeamNode], at_limit: bool
    ) -> tuple[list[BeamNode], list[BeamNode]]:
        """Return (nodes that continue, nodes that end); only a hypothesis among the first `width` may end."""
        width = self._settings.width
        if self._banks is not None:
            return self._banks.select(regular, extra, width, at_limit, rescue=not self.hypotheses.items)
        going = sorted((node for node in regular if not node.stop), key=lambda node: -node.score)[:width]
        return going, [node for node in regular[:width] if at_limit or node.stop]

    def _cut_off(self, nodes: Sequence[BeamNode], limit: StopReason) -> list[BeamNode]:
        for node in nodes:
            node.stop = node.stop or limit
        return list(nodes)

    def running_beams(self) -> list[BeamNode]:
        """Return the beams fed to the next forward pass."""
        return self.beams

    def set_start(self, start: int) -> int:
        """Assign batch rows from `start` on; return the first row after them."""
        self.start = start
        return start + len(self.beams)

    def unfinished(self, stopped: bool) -> list[BeamNode]:
        """Return hypotheses that were still running when the user or the time limit ended the search; empty at any
        other limit.
        """
        by_clock = [node for node in self._running_at_end if node.stop is not None and node.stop.reason == "time"]
        return self._running_at_end if stopped else by_clock
