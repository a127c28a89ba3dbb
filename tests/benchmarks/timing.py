"""Ratios that hold on a busy machine: two things timed in turn, pair by pair, the median of the ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def speed_ratio(ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 7) -> float:
    """How many times as fast `ours` is as `theirs` (same work): median of theirs ÷ ours over alternating runs."""
    ours(), theirs()
    pairs = []
    for index in range(rounds):
        # Alternate who goes first, so that a drifting clock favours neither.
        if index % 2:
            other, mine = seconds(theirs), seconds(ours)
        else:
            mine, other = seconds(ours), seconds(theirs)
        pairs.append(other / mine)
    return statistics.median(pairs)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of `values` lie."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
