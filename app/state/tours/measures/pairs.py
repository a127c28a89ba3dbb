"""Figures of two runs side by side."""

from __future__ import annotations

from app.state.run import Run
from app.state.tours.measures.measure import measure
from app.state.tours.measures.memory import last_bytes
from app.state.tours.tour_numbers import MeasureValue


@measure("count", runs=2)
def same_start(one: Run, other: Run) -> MeasureValue:
    """How many tokens both begin with alike."""
    pairs = zip(one.tokens, other.tokens, strict=False)
    least = min(len(one.tokens), len(other.tokens))
    return next((n for n, (a, b) in enumerate(pairs) if a.id != b.id), least)


@measure("place", runs=2, may_be_missing=True)
def parting(one: Run, other: Run) -> MeasureValue:
    """The first token at which the first run writes another than the second; none where both go the same way."""
    pairs = zip(one.tokens, other.tokens, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a.id != b.id), None)


@measure("share", runs=2, may_be_missing=True)
def bytes_beside(one: Run, other: Run) -> MeasureValue:
    """What the cache of the first held at the end, as a share of what that of the second did."""
    small, whole = last_bytes(one), last_bytes(other)
    return small / whole if isinstance(small, int) and isinstance(whole, int) and whole else None
