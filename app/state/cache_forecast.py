"""What a cache's plan foretells for any number of tokens. No Qt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from core.events import CachePlan


Polyline = list[tuple[float, float]]
"""Points (x, bytes) to draw."""

_TOLERANCE = 0.05
"""Share by which a measurement may miss the plan."""


class CacheForecast(NamedTuple):
    """Answers from a plan; without one there is nothing to foretell, and every answer says so."""

    plan: CachePlan | None = None

    def predicted(self, length: int) -> float | None:
        """Bytes foretold for that many tokens; None without a plan."""
        return _interpolate(self.plan.lengths, self.plan.predicted, length) if self.plan is not None else None

    def dynamic(self, length: int) -> float | None:
        """Bytes a cache that keeps everything would take."""
        return _interpolate(self.plan.lengths, self.plan.dynamic, length) if self.plan is not None else None

    def matches(self, length: int, size: int) -> bool:
        """Whether `size` bytes for that many tokens are what was foretold."""
        predicted = self.predicted(length)
        return predicted is not None and abs(predicted - size) <= _TOLERANCE * size

    def bends(self, first: int, last: int) -> Sequence[int]:
        """Lengths at which the foretold curve bends: the plan's own, or those around each block from `first` on."""
        if self.plan is None:
            return ()
        return self.plan.lengths if self.plan.block is None else _block_edges(self.plan.block, first, last)

    def lines(self, positions: Sequence[tuple[int, int]]) -> tuple[Polyline, Polyline]:
        """(predicted, dynamic) at these (x, tokens); empty without a plan."""
        if self.plan is None:
            return [], []
        lengths = self.plan.lengths
        predicted, dynamic = (
            [(float(x), _interpolate(lengths, sizes, length)) for x, length in positions]
            for sizes in (self.plan.predicted, self.plan.dynamic)
        )
        return predicted, dynamic

    @property
    def is_plain(self) -> bool:
        """It keeps everything as it is, so no line for “dynamic” is needed."""
        return self.plan is None or self.plan.predicted == self.plan.dynamic

    @property
    def per_token(self) -> int:
        """Bytes one more token takes where everything is kept; 0 for a state of constant size."""
        plan = self.plan
        if plan is None or len(plan.lengths) < 2:
            return 0
        return (plan.dynamic[-1] - plan.dynamic[0]) // (plan.lengths[-1] - plan.lengths[0])

    @property
    def limit(self) -> int:
        """Tokens the run may write."""
        return max(1, self.plan.lengths[-1] - self.plan.start) if self.plan is not None else 1


def _interpolate(xs: Sequence[int], ys: Sequence[int], x: int) -> float:
    """On the straight line between neighbours; the ends go on flat."""
    after = bisect_right(xs, x)
    if after == 0 or after == len(xs):
        return float(ys[0] if after == 0 else ys[-1])
    a, b = xs[after - 1], xs[after]
    return ys[after - 1] + (ys[after] - ys[after - 1]) * (x - a) / (b - a)


def _block_edges(block: int, first: int, last: int) -> list[int]:
    """Lengths on both sides of every block boundary within the text."""
    return [k * block - side for k in range(max(1, first // block), last // block + 1) for side in (1, 0)]
