"""What a run's cache will take, before it does: predicted bytes by length, and the arithmetic behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.caches import registry
from core.caches.cache_estimate import CacheEstimate, RunShape
from core.errors import UnpredictableError

if TYPE_CHECKING:
    from core.caches.base import CacheBackend
    from core.events import CachePlan
    from core.models.loaded_model import LoadedModel

_POINTS = 16
"""Lengths between the prompt and the limit that are predicted, besides those where a curve bends."""
_MOST_BLOCKS = 8
"""Blocks of a quantized cache whose two ends are predicted; longer runs show the trend."""


def plan_of(model: LoadedModel, backend: CacheBackend, situation: RunShape, start: int, most: int) -> CachePlan | None:
    """Predictions for a text that grows from `start` to `most` tokens; None for a memory that only the model knows."""
    from core.events import CachePlan  # the events' classes take a while to make: only once something runs
    from core.size_terms import worked_out

    try:
        described = backend.describe(model, situation)
        plain = registry["dynamic"].describe(model, situation)
    except UnpredictableError:
        return None
    lengths = _lengths(start, max(most, start), described)
    return CachePlan(
        backend=backend.name,
        size=described.size,
        start=start,
        lengths=lengths,
        predicted=tuple(worked_out(described.size, length) for length in lengths),
        dynamic=tuple(worked_out(plain.size, length) for length in lengths),
        capacity=described.capacity,
        sinks=described.sinks,
        window=described.window,
        block=described.block,
        bits=described.bits,
    )


def _lengths(start: int, top: int, described: CacheEstimate) -> tuple[int, ...]:
    """Ascending, `start` and `top` among them: even steps, and both sides of every bend."""
    points = {start + round((top - start) * step / _POINTS) for step in range(_POINTS + 1)}
    if described.window is not None:
        points |= {described.window - 1, described.window}
    if (block := described.block) is not None:
        first = start // block + 1
        points |= {k * block + side for k in range(first, first + _MOST_BLOCKS) for side in (-1, 0)}
    return tuple(sorted(point for point in points if start <= point <= top))
