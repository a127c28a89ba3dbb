"""The measuring process: `python -m core.labs.speed.process JOB`. It ends when its parent ends."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator

from decodescope.core.errors import DecodescopeError
from decodescope.core.labs.processes.lab_processes import run_job
from decodescope.core.labs.speed.events import LINES, Event, MeasurementFailed, SpeedJob
from decodescope.resources import language


def measurement_messages(job: SpeedJob) -> Iterator[Event | MeasurementFailed]:
    """Yield all messages of the measurement, including its failure."""
    try:
        import torch

        from decodescope.core.labs.speed.measured_rows import measure_rows

        language.set_language(job.language)
        torch.set_num_threads(job.settings.threads or _default_threads(job.settings.model))
        yield from measure_rows(job.settings, threading.Event())
    except DecodescopeError as error:
        yield MeasurementFailed(error.cause, error.remedy, error.details)
    except Exception as error:
        yield MeasurementFailed(f"{type(error).__name__}: {error}".splitlines()[0], "", traceback.format_exc())


def _default_threads(model: str) -> int:
    """Return the thread count of a run in the window: one for a small model, whose steps are too short to share.

    Raises ModelError.
    """
    from decodescope.core.generation.thread_choice import default_threads
    from decodescope.core.models import catalog, model_entry

    parameters = model_entry.describe(catalog.locate(model), model, "folder").parameters or 0
    return default_threads(parameters)


def _work(job: SpeedJob, send_message: Callable[[Event | MeasurementFailed], None]) -> int:
    for message in measurement_messages(job):
        send_message(message)
    return 0


if __name__ == "__main__":
    run_job(SpeedJob, LINES, _work)
