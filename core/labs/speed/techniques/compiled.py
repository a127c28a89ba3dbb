"""Compiled steps: machine code for this model and this cache size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from decodescope.core.caches import registry
from decodescope.core.errors import CacheError
from decodescope.core.labs.speed.events import Row, RowMeasurement
from decodescope.core.labs.speed.measured_model import MeasuredModel

PLAIN, STATIC, COMPILED = "dynamic", "static", "compiled"
ROWS = (PLAIN, STATIC, COMPILED)


def measure(subject: MeasuredModel, row: Row, _done: Mapping[str, RowMeasurement]) -> RowMeasurement:
    """Measure a growing cache, a static one, and a static one with a compiled step.

    Raises DecodescopeError, MeasurementCancelled.
    """
    base = subject.base
    if row.name == PLAIN:
        return subject.to_measured(row, subject.baseline, base)
    options = {"compile": row.name == COMPILED}
    if reason := registry["static"].unsupported_reason(base, frozenset(), options):
        raise CacheError(reason)
    request = replace(subject.build_request(), cache="static", cache_options=options)
    timed, against = subject.time_against_baseline(request, warmup_tokens=subject.tokens)
    found = subject.to_measured(row, timed, base, median(against))
    return replace(found, same=timed.last.sequences == subject.baseline.last.sequences, against=against)
