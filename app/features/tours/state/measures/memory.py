"""Measures of the KV cache."""

from __future__ import annotations

from decodescope.app.features.tours.state.measures.measure import MeasureValue, measure, measure_parts
from decodescope.app.state.run import Run
from decodescope.core.events import CacheMeasured, CachePlan


def _measured(run: Run) -> list[CacheMeasured]:
    return [event for event in run.events if isinstance(event, CacheMeasured)]


def _plan(run: Run) -> CachePlan | None:
    return next((event for event in run.events if isinstance(event, CachePlan)), None)


measure_parts(  # after the prefill
    lambda run: next(iter(_measured(run)), None),
    first_bytes=("bytes", "bytes"),
    first_tokens=("count", "tokens"),
)
measure_parts(
    _plan,
    sinks=("count", lambda plan: plan.sinks or None),  # tokens that are never evicted
    window=("count", lambda plan: plan.window or None),  # tokens of the attention window
    bits=("count", lambda plan: plan.bits or None),  # per stored number
)
measure_parts(lambda run: next(reversed(_measured(run)), None), tokens_held=("count", "tokens"))  # at the end


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


@measure("ratio", runs=2, may_be_missing=True)
def bytes_beside(one: Run, other: Run) -> MeasureValue:
    """Cache size of the first run at the end, as a fraction of that of the second."""
    small, whole = last_bytes(one), last_bytes(other)
    return small / whole if isinstance(small, int) and isinstance(whole, int) and whole else None
