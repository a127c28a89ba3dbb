"""What a run's cache will take, before it does: predicted bytes by length, and the arithmetic behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from core.arithmetic import worked_out
from core.caches import registry
from core.caches.description import Description, Situation
from core.errors import UnpredictableError
from core.events import CachePlan, Event, Prefilled

if TYPE_CHECKING:
    from core.decoding.run import DecodingRun

_POINTS = 16
"""Lengths between the prompt and the limit that are predicted, besides those where a curve bends."""
_MOST_BLOCKS = 8
"""Blocks of a quantized cache whose two ends are predicted; longer runs show the trend."""


def with_plan(run: DecodingRun, events: Iterator[Event]) -> Iterator[Event]:
    """The strategy's events, and behind `Prefilled` a `CachePlan`, where the model's layers can be told."""
    with closing(events) as inner:  # type: ignore[type-var]  # strategies are generators
        for event in inner:
            yield event
            if isinstance(event, Prefilled) and (plan := plan_of(run)) is not None:
                yield plan


def plan_of(run: DecodingRun) -> CachePlan | None:
    """Predictions for a run that has read its prompt; None for a memory that only the model itself knows."""
    from core.caches.tensors.shapes import learn_shapes  # needs torch

    learn_shapes(run.model, run.forward.cache)
    source = len(run.prompt_ids) if run.model.is_encoder_decoder else None
    situation = Situation(run.rows, run.room, source, run.request.cache_options)
    try:
        described = run.backend.describe(run.model, situation)
        plain = registry["dynamic"].describe(run.model, situation)
    except UnpredictableError:
        return None
    start = len(run.start_ids)
    lengths = _lengths(start, max(run.max_length, start), described)
    return CachePlan(
        backend=run.backend.name,
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


def _lengths(start: int, top: int, described: Description) -> tuple[int, ...]:
    """Ascending, `start` and `top` among them: even steps, and both sides of every bend."""
    points = {start + round((top - start) * step / _POINTS) for step in range(_POINTS + 1)}
    if described.window is not None:
        points |= {described.window - 1, described.window}
    if (block := described.block) is not None:
        first = start // block + 1
        points |= {k * block + side for k in range(first, first + _MOST_BLOCKS) for side in (-1, 0)}
    return tuple(sorted(point for point in points if start <= point <= top))
