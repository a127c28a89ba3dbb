"""Weights with fewer bits: a pass reads fewer bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from decodescope.core.labs.speed.events import Row, RowMeasurement
from decodescope.core.labs.speed.measured_model import MeasuredModel

ROWS = ("float32", "bfloat16", "int8", "int4")


def measure(subject: MeasuredModel, row: Row, measured_rows: Mapping[str, RowMeasurement]) -> RowMeasurement:
    """Measure the model with its weights stored as `row.name`. Raises DecodescopeError, MeasurementCancelled."""
    base = subject.base
    first = measured_rows.get(ROWS[0])
    against = first.speed if first is not None else 0.0
    if row.name == base.weights:
        return subject.to_measured(row, subject.baseline, base, against)
    model = subject.load_as(row.name)
    if base.weights != ROWS[0]:
        return subject.to_measured(row, subject.time_request(model), model, against)
    timed, baseline_speeds = subject.time_against_baseline(subject.build_request(), model=model)
    return replace(subject.to_measured(row, timed, model, median(baseline_speeds)), against=baseline_speeds)
