"""Batching: each pass reads the weights once for several texts."""

from __future__ import annotations

from collections.abc import Mapping

from decodescope.core.errors import OutOfMemoryError
from decodescope.core.labs.speed.events import Row, RowMeasurement
from decodescope.core.labs.speed.measured_model import MeasuredModel
from decodescope.core.models.model_entry import cache_bytes, check_memory, read_config
from decodescope.core.system.gpu import free_device_bytes

ROWS = ("1", "2", "4", "8", "16", "32", "64")


def measure(subject: MeasuredModel, row: Row, measured_rows: Mapping[str, RowMeasurement]) -> RowMeasurement:
    """Measure `row.name` texts, each sampled with its own random numbers. Raises DecodescopeError,
    MeasurementCancelled.
    """
    texts, model = int(row.name), subject.base
    _check_free_memory(subject, texts)
    timed = subject.time_request(model, subject.build_request(do_sample=True, num_return_sequences=texts))
    first = measured_rows.get("1")
    return subject.to_measured(row, timed, model, first.speed if first is not None else 0.0, texts)


def _check_free_memory(subject: MeasuredModel, texts: int) -> None:
    """Check that the keys and values of all texts fit into memory; the weights are loaded already."""
    model = subject.base
    length = subject.tokens + 2 * len(subject.settings.prompt)  # a token has at least half a character
    needed = texts * cache_bytes(read_config(subject.entry.path), length, model.dtype.itemsize)
    fit = check_memory(0, needed, length, texts, free_device_bytes(model.device))
    if not fit.ok:
        raise OutOfMemoryError(fit.sentence)
