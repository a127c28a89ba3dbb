"""Whether the events of a recorded run fit each other: every reference points at what came before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from core.events import (
    BeamsRanked,
    BeamStep,
    CacheMeasured,
    CachePlan,
    CostCurve,
    DraftRound,
    Event,
    Finished,
    MediumRead,
    RunStarted,
    SequenceFinished,
    TokenChosen,
    TokenCompared,
)
from core.size_terms import evaluate_exactly
from resources.language import tr

_MIN_WORK = 2**24
_WORK_PER_BYTE = 64
"""Steps of work, of a microsecond or less, that a view or a page may have to do for a file."""
_WORK_PER_SEQUENCE = 100
_MAX_TERM_LENGTH = 1000
_EXTRA_TOKENS = 65_536
"""Tokens that a cache may hold beyond four times those of the run: an encoder's, drafts', a window's."""
_MAX_SIZE = 2**80
_PLACES = frozenset(("device", "host", "disk"))
_PARTS = frozenset(("keys", "values", "scales", "residual", "self", "cross", "state"))


class EventChecker:
    """Checks the events of one run in their order. Raises ValueError for what contradicts an earlier one."""

    def __init__(self) -> None:
        self._work = _MIN_WORK
        self._started: RunStarted | None = None
        self._steps: dict[int, int] = {}
        """Tokens of each text so far."""
        self._last: TokenChosen | None = None
        self._parents: dict[int, int] = {0: 0}
        self._depths: dict[int, int] = {0: 0}
        """Of every node of a beam search; the prompt is node 0."""
        self._groups = 1
        self._beam_steps, self._leader, self._newest = 0, 0, 0
        self._round_step = 0
        self._positions = 0
        """Tokens that were read or written so far."""
        self._checks: dict[type[Event], Callable[[Any], bool]] = {
            RunStarted: self._check_start,
            TokenChosen: self._check_token,
            TokenCompared: self._check_comparison,
            BeamStep: self._check_beams,
            BeamsRanked: self._check_ranking,
            DraftRound: self._check_round,
            CostCurve: lambda event: _is_increasing(tokens for tokens, _ in event.curve),
            CacheMeasured: self._check_cache,
            CachePlan: self._check_plan,
            SequenceFinished: lambda event: self._is_sequence(event.sequence),
            Finished: self._check_end,
        }

    def allow(self, kept: int) -> None:
        """Add what a block of so many bytes in the file may cost."""
        self._work += kept * _WORK_PER_BYTE

    def check(self, event: Event) -> None:
        """Raise ValueError for an event that contradicts those before it."""
        check = self._checks.get(type(event))
        if check is not None and not check(event):
            raise ValueError(tr("{event} contradicts what comes before it").format(event=type(event).__name__))

    def _count_work(self, work: int) -> None:
        self._work -= work
        if self._work < 0:
            raise ValueError(tr("it would take more work to show than a run of its size does"))

    def _is_sequence(self, sequence: int) -> bool:
        """Whether there is a text of that number; a run that did not record its start has those it numbers in order."""
        if sequence < 0:
            return False
        if self._started is not None:
            return sequence < max(self._started.sequences, 1)
        return sequence <= len(self._steps)

    def _check_start(self, event: RunStarted) -> bool:
        if self._started is not None or self._steps or self._beam_steps or event.sequences < 0:
            return False
        self._started = event
        self._positions += len(event.prompt) + len(event.beginning)
        self._count_work(event.sequences * _WORK_PER_SEQUENCE)
        return all(self._is_valid_medium(medium, len(event.prompt)) for medium in event.media)

    def _is_valid_medium(self, medium: MediumRead, prompt: int) -> bool:
        positions = medium.last - medium.first + 1
        self._count_work(max(positions, 0))
        self._positions += max(positions, 0)
        fits = medium.last < prompt if medium.place == "prompt" else True
        return positions >= 0 and fits and medium.rows * medium.columns <= positions

    def _check_token(self, event: TokenChosen) -> bool:
        step = self._steps.get(event.sequence, 0)
        if event.step != step or not self._is_sequence(event.sequence):
            return False
        self._steps[event.sequence] = step + 1
        self._positions += 1
        self._last = event
        return True

    def _check_comparison(self, event: TokenCompared) -> bool:
        return self._last is not None and event.step == self._last.step

    # A beam search

    def _check_beams(self, event: BeamStep) -> bool:
        if event.step != self._beam_steps or self._steps:
            return False
        if not self._beam_steps:
            self._groups = max((candidate.group for candidate in event.candidates), default=0) + 1
            if self._groups > max(len(event.candidates), 1):
                return False
        self._beam_steps += 1
        self._positions += 1
        if any(candidate.parent not in self._parents for candidate in event.candidates):
            return False
        return self._add_nodes(event)

    def _add_nodes(self, event: BeamStep) -> bool:
        newest = self._newest
        for candidate in event.candidates:
            if candidate.node <= newest or candidate.group >= self._groups:
                return False
            newest = candidate.node
            self._parents[candidate.node] = candidate.parent
            self._depths[candidate.node] = self._depths[candidate.parent] + 1
        self._newest = newest
        known = self._parents
        if event.best not in known:
            return False
        if known[event.best] != self._leader and event.best != self._leader:
            self._count_work(self._depths[event.best] + self._depths[self._leader])
        self._leader = event.best
        self._count_work(len(event.overruled) * len(event.candidates))
        return all(wish.parent in known for wish in event.overruled) and all(
            node in known for node, _ in event.forbidden
        )

    def _check_ranking(self, event: BeamsRanked) -> bool:
        self._count_work(sum(self._depths.get(item.node, 0) for item in event.hypotheses))
        return all(item.node in self._parents for item in event.hypotheses)

    # Speculation

    def _check_round(self, event: DraftRound) -> bool:
        if event.step < self._round_step:
            return False
        self._round_step = event.step
        self._count_work(len(event.nodes) ** 2)
        self._positions += len(event.nodes)
        depths = {0: 0}
        for node in event.nodes:
            if node.node in depths or node.parent not in depths or node.depth != depths[node.parent] + 1:
                return False
            depths[node.node] = node.depth
        parents = {node.node: node.parent for node in event.nodes}
        path = [0, *event.accepted]
        if any(parents.get(child) != parent for parent, child in pairwise(path)):
            return False
        choice = event.choice
        if choice is None:
            return True
        count = len(choice.worths)
        return len(choice.times) == count and choice.asked < count and all(number < count for number in choice.silent)

    # The cache

    def _check_cache(self, event: CacheMeasured) -> bool:
        named = all(place in _PLACES and part in _PARTS for place, part, _ in event.parts)
        held = [place for span in event.held for place in span]
        most = 4 * self._positions + _EXTRA_TOKENS
        return named and _is_non_decreasing(held) and max([event.tokens, *held]) <= most

    def _check_plan(self, event: CachePlan) -> bool:
        if (
            not event.lengths
            or not len(event.lengths) == len(event.predicted) == len(event.dynamic)
            or not _is_increasing(event.lengths)
        ):
            return False
        self._count_work(_MAX_TERM_LENGTH * (len(event.lengths) + 1))
        try:
            sizes = [evaluate_exactly(event.size, length) for length in (event.start, *event.lengths)]
        except (ArithmeticError, RecursionError):
            return False
        return all(abs(size) <= _MAX_SIZE for size in sizes)

    def _check_end(self, event: Finished) -> bool:
        count = len(event.sequences)
        if len(event.texts) != count or (event.scores is not None and len(event.scores) != count):
            return False
        return len(event.order) in (0, count) and all(map(self._is_sequence, event.order))


def _is_non_decreasing(numbers: Iterable[float]) -> bool:
    return all(one <= other for one, other in pairwise(numbers))


def _is_increasing(numbers: Iterable[float]) -> bool:
    return all(one < other for one, other in pairwise(numbers))
