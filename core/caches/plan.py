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
_MAX_BLOCKS = 8
"""Blocks of a quantized cache whose two ends are predicted; longer runs show the trend."""


def predict_cache(
    model: LoadedModel, backend: CacheBackend, run: RunShape, start: int, max_length: int
) -> CachePlan | None:
    """Predictions for a text that grows from `start` to `max_length` tokens; None for a memory that only the model knows."""
    from core.events import CachePlan  # the events' classes take a while to make: only once something runs
    from core.size_terms import evaluate

    try:
        described = backend.describe(model, run)
        plain = registry["dynamic"].describe(model, run)
    except UnpredictableError:
        return None
    lengths = _predicted_lengths(start, max(max_length, start), described)
    return CachePlan(
        backend=backend.name,
        size=described.size,
        start=start,
        lengths=lengths,
        predicted=tuple(evaluate(described.size, length) for length in lengths),
        dynamic=tuple(evaluate(plain.size, length) for length in lengths),
        capacity=described.capacity,
        sinks=described.sinks,
        window=described.window,
        block=described.block,
        bits=described.bits,
    )


def _predicted_lengths(start: int, max_length: int, estimate: CacheEstimate) -> tuple[int, ...]:
    """Ascending, `start` and `max_length` among them: even steps, and both sides of every bend."""
    points = {start + round((max_length - start) * step / _POINTS) for step in range(_POINTS + 1)}
    if estimate.window is not None:
        points |= {estimate.window - 1, estimate.window}
    if (block := estimate.block) is not None:
        first = start // block + 1
        points |= {k * block + side for k in range(first, first + _MAX_BLOCKS) for side in (-1, 0)}
    return tuple(sorted(point for point in points if start <= point <= max_length))
