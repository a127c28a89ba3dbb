"""Valid ranges of all numbers in recorded events. A value outside comes from a damaged or forged file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias

from decodescope.core.common.size_terms import evaluate_exactly
from decodescope.core.events import (
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
from decodescope.core.trace.schema import TypeSpec, record_schemas
from decodescope.resources.language import tr


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Smallest and largest value of a number, both inclusive."""

    minimum: float
    maximum: float
    allows_nan: bool = False

    def check(self, values: Sequence[Any]) -> None:
        """Raise ValueError if a number is out of range."""
        if values and not self._contains_all(values):
            outside = next((value for value in values if not self._contains(value)), math.nan)
            raise ValueError(tr("{number} is out of range").format(number=_short_number(outside)))

    def _contains_all(self, values: Sequence[Any]) -> bool:
        if self.minimum <= min(values) and max(values) <= self.maximum:
            return self.allows_nan or not any(value != value for value in values)
        return self.allows_nan and all(map(self._contains, values))

    def _contains(self, value: float) -> bool:
        return self.minimum <= value <= self.maximum or (self.allows_nan and value != value)


Ranges: TypeAlias = "NumberRange | tuple[Ranges | None, ...]"
"""One range, or for tuples one per item; None for texts."""

COUNT = NumberRange(0, 2**53)
"""Tokens, steps, nodes. Larger numbers are not exact as floats in a chart or JSON."""
BYTES = NumberRange(0, 2**62)
INTEGER = NumberRange(-(2**63), 2**64 - 1)
RANK = NumberRange(0, 2**53)
SHARE = NumberRange(0.0, 1.001, allows_nan=True)
"""Rounding may produce probabilities slightly above 1; unreported values are NaN."""
REAL = NumberRange(-math.inf, math.inf, allows_nan=True)
ENTROPY = NumberRange(-1.0, 1e6, allows_nan=True)
SECONDS = NumberRange(0.0, 1e9)
RATE = NumberRange(0.0, 1e30)
EXPONENT = NumberRange(-1e6, 1e6)

ANY_LENGTH = NumberRange(0, math.inf)
"""Marks a text that may be as long as the run; all others are tokens, names or sentences."""
MAX_TEXT_LENGTH = 2**16

_BY_NAME: Mapping[str, Ranges] = {
    # positions and counts
    **dict.fromkeys(
        ("tokens", "reused", "step", "sequence", "best", "required", "round", "length", "node", "parent", "depth",
         "progress", "accepted", "times", "silent", "asked", "order", "prompt_tokens", "new_tokens", "target_passes",
         "survivors", "count", "removed", "back", "size", "counts", "rows",
         "columns", "width", "height", "vocabulary", "layer"), COUNT),
    **dict.fromkeys(("rank", "raw_rank", "final_rank"), RANK),
    **dict.fromkeys(
        ("bytes", "peak", "spare", "device_used", "device_reserved", "device_free", "placement", "layers",
         "predicted", "dynamic", "cache_bytes", "cache_peak_bytes", "peak_memory_bytes"),
        BYTES),
    **dict.fromkeys(("id", "ids", "extra_id", "seed"), INTEGER),
    "sequences": NumberRange(0, 1_000_000),
    "context": NumberRange(0, 10**31),  # transformers writes 10**30 for "no limit"
    "capacity": NumberRange(1, 2**24),
    "window": NumberRange(1, 2**53),
    "block": NumberRange(1, 2**31),
    **dict.fromkeys(("start", "lengths", "sinks"), NumberRange(0, 2**24)),  # a text of 16 million tokens
    "bits": NumberRange(0, 64),
    "group": NumberRange(0, 100_000),
    "drafter": NumberRange(0, 1000),
    "proposers": NumberRange(0, 1000),
    "first": NumberRange(-1, 2**31),
    "last": NumberRange(-1, 2**31),
    # probabilities and logarithms
    **dict.fromkeys(
        ("raw_probability", "probability", "mass", "raw_mass", "draft_probability", "target_probability",
         "acceptance_rate"), SHARE),
    **dict.fromkeys(
        ("raw_log_probability", "log_probability", "score", "scores", "normalized", "value", "divergence", "error",
         "degeneration_penalty", "worths", "ratio", "die", "chance", "threshold", "deviation", "floor", "lowest",
         "target", "limit", "surprise", "temperature", "low", "high", "share", "weighted", "expected", "penalty",
         "strength"),
        REAL),
    **dict.fromkeys(("entropy", "varentropy"), ENTROPY),
    **dict.fromkeys(("length_penalty", "diversity_penalty"), EXPONENT),
    # times
    **dict.fromkeys(
        ("seconds", "heard", "draft_seconds", "verify_seconds", "overhead_seconds", "time_to_first_token"), SECONDS),
    **dict.fromkeys(
        ("prefill_tokens_per_second", "decode_tokens_per_second", "tokens_per_target_pass", "predicted_speedup"), RATE),
    # tuples
    "forbidden": (COUNT, SHARE),
    "curve": (COUNT, RATE),
    "parts": (None, None, BYTES),
    "held": (COUNT, COUNT),
    "top": (INTEGER, SHARE),
    "divergences": (COUNT, REAL),
}  # fmt: skip
_BY_FIELD: Mapping[tuple[str, str], Ranges] = {
    ("ScoreSpread", "best"): REAL,
    ("Figure", "value"): INTEGER,
    ("Finished", "sequences"): INTEGER,
    ("Finished", "texts"): ANY_LENGTH,
    ("Hypothesis", "text"): ANY_LENGTH,
}


@cache
def range_of(record: str, field: str) -> Ranges | None:
    """Return the range of a field; None for one without numbers or unlimited text."""
    special = _BY_FIELD.get((record, field))
    if special is not None:
        return special
    kind = next(item.kind for item in record_schemas()[record].fields if item.name == field)
    return _BY_NAME[field] if holds_numbers(kind) else None


def holds_numbers(kind: TypeSpec) -> bool:
    """Return whether values of that kind contain numbers outside nested records."""
    if isinstance(kind, str):
        return kind in ("int", "float")
    return kind[0] in ("optional", "many", "tuple") and any(map(holds_numbers, kind[1:]))


def check_value(value: object, allowed: Ranges) -> None:
    """Check all numbers of a field's value. Raises ValueError."""
    if value is None or allowed is ANY_LENGTH:
        return
    if isinstance(allowed, NumberRange):
        if isinstance(value, tuple):
            for item in value:
                check_value(item, allowed)
        else:
            allowed.check([value])
        return
    assert isinstance(value, tuple)
    for item in value:
        for part, its_range in zip(item, allowed, strict=True):
            if its_range is not None:
                check_value(part, its_range)


def _short_number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) or abs(value) < 10**15 else f"{'-' if value < 0 else ''}10^15…"


_MIN_WORK = 2**24
_WORK_PER_BYTE = 64
"""Limits on the work, in steps of at most a microsecond, that a file may cause in a view or page."""
_WORK_PER_SEQUENCE = 100
_MAX_TERM_LENGTH = 1000
_EXTRA_TOKENS = 65_536
"""Tokens that a cache may hold beyond four times those of the run, for encoders, drafts and windows."""
_MAX_SIZE = 2**80
_PLACES = frozenset(("device", "host", "disk"))
_PARTS = frozenset(("keys", "values", "scales", "residual", "self", "cross", "state"))


class EventChecker:
    """Checks the events of one run in order. Raises ValueError for an event that contradicts an earlier one."""

    def __init__(self) -> None:
        self._work = _MIN_WORK
        self._started: RunStarted | None = None
        self._steps: dict[int, int] = {}
        """Number of tokens of each sequence so far."""
        self._last: TokenChosen | None = None
        self._parents: dict[int, int] = {0: 0}
        self._depths: dict[int, int] = {0: 0}
        """Depth of every node of a beam search; the prompt is node 0."""
        self._groups = 1
        self._beam_steps, self._leader, self._newest = 0, 0, 0
        self._round_step = 0
        self._positions = 0
        """Number of tokens read or written so far."""
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

    def allow(self, stored_bytes: int) -> None:
        """Add the work allowed for a block of `stored_bytes` bytes in the file."""
        self._work += stored_bytes * _WORK_PER_BYTE

    def check(self, event: Event) -> None:
        """Raise ValueError for an event that contradicts an earlier one."""
        check = self._checks.get(type(event))
        if check is not None and not check(event):
            raise ValueError(tr("{event} contradicts an earlier event").format(event=type(event).__name__))

    def _count_work(self, work: int) -> None:
        self._work -= work
        if self._work < 0:
            raise ValueError(tr("displaying it would take more work than any run of its size needs"))

    def _is_sequence(self, sequence: int) -> bool:
        """Return whether the sequence exists; without a recorded start, sequences must be numbered in order."""
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
        funnels, overruled = (one.parent for one in event.funnels), (one.parent for one in event.overruled)
        named = (*funnels, *overruled, *(node for node, _ in event.forbidden))
        return all(node in known for node in named)

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
        max_tokens = 4 * self._positions + _EXTRA_TOKENS
        return named and _is_non_decreasing(held) and max([event.tokens, *held]) <= max_tokens

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
