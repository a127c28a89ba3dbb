"""Measures of the KV cache."""

from __future__ import annotations

from app.features.tours.state.measures.measure import MeasureValue, measure
from app.state.run import Run
from core.events import CacheMeasured, CachePlan


def _measured(run: Run) -> list[CacheMeasured]:
    return [event for event in run.events if isinstance(event, CacheMeasured)]


def _plan(run: Run) -> CachePlan | None:
    return next((event for event in run.events if isinstance(event, CachePlan)), None)


@measure("bytes", may_be_missing=True)
def first_bytes(run: Run) -> MeasureValue:
    """Bytes in the cache after the prefill."""
    found = _measured(run)
    return found[0].bytes if found else None


@measure("count", may_be_missing=True)
def first_tokens(run: Run) -> MeasureValue:
    """Number of tokens in the cache after the prefill."""
    found = _measured(run)
    return found[0].tokens if found else None


@measure("bytes", may_be_missing=True)
def last_bytes(run: Run) -> MeasureValue:
    """Bytes in the cache at the end."""
    found = _measured(run)
    return found[-1].bytes if found else None


@measure("bytes", may_be_missing=True)
def bytes_a_token(run: Run) -> MeasureValue:
    """Bytes per additional token from prefill to end; None if the cache did not grow with the tokens it read."""
    found = _measured(run)
    grown = found[-1].tokens - found[0].tokens if found else 0
    return (found[-1].bytes - found[0].bytes) / grown if grown > 0 else None


@measure("count")
def grows_evenly(run: Run) -> MeasureValue:
    """1 if the cache used the same number of bytes per token throughout, else 0."""
    found = _measured(run)
    each = {event.bytes / event.tokens for event in found if event.tokens}
    return int(len(each) == 1 and each != {0.0} and found[-1].tokens > found[0].tokens)


@measure("count", may_be_missing=True)
def tokens_held(run: Run) -> MeasureValue:
    """Number of tokens in the cache at the end."""
    found = _measured(run)
    return found[-1].tokens if found else None


@measure("count", may_be_missing=True)
def tokens_read(run: Run) -> MeasureValue:
    """Number of tokens read by the end, including evicted ones."""
    found = _measured(run)
    if not found:
        return None
    return found[-1].held[-1][1] if found[-1].held else found[-1].tokens


@measure("count", may_be_missing=True)
def forgotten(run: Run) -> MeasureValue:
    """Number of tokens read but evicted by the end."""
    found = _measured(run)
    if not found or not found[-1].held:
        return None
    return found[-1].held[-1][1] - sum(stop - start for start, stop in found[-1].held)


@measure("count", may_be_missing=True)
def sinks(run: Run) -> MeasureValue:
    """Number of sink tokens, which are never evicted."""
    plan = _plan(run)
    return plan.sinks if plan and plan.sinks else None


@measure("count", may_be_missing=True)
def window(run: Run) -> MeasureValue:
    """Size of the attention window in tokens."""
    plan = _plan(run)
    return plan.window if plan and plan.window else None


@measure("count", may_be_missing=True)
def bits(run: Run) -> MeasureValue:
    """Bits per stored number."""
    plan = _plan(run)
    return plan.bits if plan and plan.bits else None


@measure("share", may_be_missing=True)
def rounding(run: Run) -> MeasureValue:
    """Relative error of the stored keys."""
    errors = [event.error for event in _measured(run) if event.error is not None]
    return errors[-1] if errors else None


@measure("count", runs=2)
def same_start(one: Run, other: Run) -> MeasureValue:
    """Length of the common prefix in tokens."""
    pairs = zip(one.tokens, other.tokens, strict=False)
    shorter_length = min(len(one.tokens), len(other.tokens))
    return next((n for n, (a, b) in enumerate(pairs) if a.id != b.id), shorter_length)


@measure("place", runs=2, may_be_missing=True)
def parting(one: Run, other: Run) -> MeasureValue:
    """Index of the first token that differs between the runs; None if none does."""
    pairs = zip(one.tokens, other.tokens, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a.id != b.id), None)


@measure("share", runs=2, may_be_missing=True)
def bytes_beside(one: Run, other: Run) -> MeasureValue:
    """Cache size of the first run at the end, as a fraction of that of the second."""
    small, whole = last_bytes(one), last_bytes(other)
    return small / whole if isinstance(small, int) and isinstance(whole, int) and whole else None
