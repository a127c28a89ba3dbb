"""Measure in a separate process, which uses none of this process's memory and can be stopped at once. Imports no
torch.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

from decodescope.core.checks.arguments import cancel_event_or_new
from decodescope.core.errors import ScaleError
from decodescope.core.labs.arguments import check_lab_object, with_plain_fields
from decodescope.core.labs.processes.lab_processes import LabProcesses
from decodescope.core.labs.speed.events import (
    LINES,
    Event,
    MeasurementFailed,
    MeasurementFinished,
    MeasurementRequest,
    SpeedJob,
)
from decodescope.resources import language
from decodescope.resources.language import tr

_POLL_SECONDS = 0.1


def measuring(asked: MeasurementRequest, cancel: threading.Event | None = None) -> Iterator[Event]:
    """Yield the events of a measurement; ends without `MeasurementFinished` once `cancel` is set.

    No process outlives it. A packaged program cannot start another Python and measures in this process. Raises
    DecodescopeError.
    """
    check_lab_object("asked", asked, MeasurementRequest)
    asked = with_plain_fields(asked)
    asked.check()
    cancel = cancel_event_or_new(cancel)
    if getattr(sys, "frozen", False):
        from decodescope.core.labs.speed import measured_rows

        yield from measured_rows.measure_rows(asked, cancel)
        return
    job = SpeedJob(asked, language.current_language())
    with LabProcesses("decodescope.core.labs.speed.process", [job], LINES) as ranks:
        while not cancel.is_set():
            match ranks.next_message(_POLL_SECONDS):
                case (_, MeasurementFailed() as failed):
                    raise ScaleError(failed.cause, failed.remedy, failed.details)
                case (_, None):
                    raise _ended_error(ranks)
                case (_, event) if event is not None:
                    yield event
                    if isinstance(event, MeasurementFinished):
                        return


def _ended_error(ranks: LabProcesses[Event | MeasurementFailed]) -> ScaleError:
    return ScaleError(
        tr("The measuring process exited with code {code}.").format(code=ranks.exit_code(0)),
        tr("Close other programs if memory is low, and try again."),
        ranks.stderr_tail(0),
    )
