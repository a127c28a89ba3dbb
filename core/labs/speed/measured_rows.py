"""Measure every row of every technique, independently of failures of other rows. Imports torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from decodescope.core.errors import DecodescopeError
from decodescope.core.labs.speed.events import (
    Event,
    MeasurementFinished,
    MeasurementRequest,
    Row,
    RowMeasurement,
    RowPlan,
    RowStarted,
    SkippedRow,
    Way,
)
from decodescope.core.labs.speed.measured_model import MeasuredModel, MeasurementCancelled, free_unused_memory
from decodescope.core.labs.speed.techniques import batch, compiled, drafts, offload, parallel, weights
from decodescope.core.system.device_memory import is_out_of_memory
from decodescope.resources.language import tr

Measure = Callable[[MeasuredModel, Row, Mapping[str, RowMeasurement]], RowMeasurement]


class _Technique(NamedTuple):
    rows: tuple[str, ...]
    measure: Measure


_TECHNIQUES: dict[Way, _Technique] = {
    "batch": _Technique(batch.ROWS, batch.measure),
    "weights": _Technique(weights.ROWS, weights.measure),
    "drafts": _Technique(drafts.ROWS, drafts.measure),
    "offload": _Technique(offload.ROWS, offload.measure),
    "parallel": _Technique(parallel.ROWS, parallel.measure),
    "compiled": _Technique(compiled.ROWS, compiled.measure),
}


def plan_rows(settings: MeasurementRequest) -> RowPlan:
    """Return all rows, in order."""
    return RowPlan(
        tuple(Row(way, name) for way in settings.ways if way in _TECHNIQUES for name in _TECHNIQUES[way].rows)
    )


def measure_rows(settings: MeasurementRequest, cancel: threading.Event) -> Iterator[Event]:
    """Measure in this process; ends without `MeasurementFinished` once `cancel` is set.

    Raises DecodescopeError if the model itself cannot be found or read.
    """
    began = time.perf_counter()
    subject, done = MeasuredModel(settings, cancel), dict[Row, RowMeasurement]()
    yield (plan := plan_rows(settings))
    try:
        yield from subject.reference_events()
        for row in plan.rows:
            yield RowStarted(row)
            event = _measure_row(
                subject, row, {each.name: found for each, found in done.items() if each.way == row.way}
            )
            if isinstance(event, RowMeasurement):
                done[row] = event
            yield event
            if row.way == "weights" or row.name == offload.DRAFTED:
                subject.release_offloaded()
                free_unused_memory()
    except MeasurementCancelled:
        return
    yield MeasurementFinished(time.perf_counter() - began)


def _measure_row(
    subject: MeasuredModel, row: Row, measured_rows: Mapping[str, RowMeasurement]
) -> RowMeasurement | SkippedRow:
    try:
        subject.check_cancelled()
        return _TECHNIQUES[row.way].measure(subject, row, measured_rows)
    except DecodescopeError as error:
        return SkippedRow(row, error.cause)
    except MeasurementCancelled:
        raise
    except Exception as error:  # a library's own exception for an unsupported technique
        if is_out_of_memory(error):
            return SkippedRow(row, tr("Out of memory."))
        return SkippedRow(row, tr("It failed with {error}.").format(error=f"{type(error).__name__}: {error}"[:300]))
