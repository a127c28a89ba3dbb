"""The speed lab: measure techniques that lower latency on a model of your choice, compared with the memory limit.

    for event in core.labs.speed.measuring(core.labs.speed.MeasurementRequest("storyteller"), cancel): ...

Importing this package imports no torch; the measurement runs in a process of its own.
"""

# mypy: implicit-reexport
# ruff: noqa: F401
from __future__ import annotations

from decodescope.core.common.lazy_imports import lazy_imports

with lazy_imports(globals()) as _PUBLIC_NAMES:
    from decodescope.core.labs.speed.events import (
        WAYS,
        Event,
        MeasurementFinished,
        MeasurementRequest,
        Row,
        RowMeasurement,
        RowPlan,
        RowStarted,
        SkippedRow,
        SpeedReference,
        Way,
    )
    from decodescope.core.labs.speed.explanations import (
        TITLES,
        explain_reference,
        explain_way,
        row_title,
        speed_words,
        times,
    )
    from decodescope.core.labs.speed.measurement_process import measuring

__all__ = sorted(_PUBLIC_NAMES)
