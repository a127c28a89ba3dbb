"""Ratios that hold on a busy machine: two functions timed alternately, the median of the pairs' ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def speed_ratio(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 7, rest: Callable[[], object] = bool
) -> float:
    """Return the speedup of `ours` over `theirs` (same work): median of theirs ÷ ours over alternating runs.

    `rest` is called before each of them and not timed: what one leaves to be done must not slow down the other."""
    ours(), theirs()

    def timed(run: Callable[[], object]) -> float:
        rest()
        return seconds(run)

    pairs = []
    for index in range(rounds):
        # Alternate who goes first, so that a drifting clock favours neither.
        if index % 2:
            other, result = timed(theirs), timed(ours)
        else:
            result, other = timed(ours), timed(theirs)
        pairs.append(other / result)
    return statistics.median(pairs)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of `values` lie."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
