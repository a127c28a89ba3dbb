"""A run that has ended, written to a file of its own."""

from __future__ import annotations

from pathlib import Path

from app.state.recorded_run import WINDOW_REQUEST_KEY
from app.state.request_json import request_to_json
from app.state.run import Run
from core.file_writing import atomic_write
from resources.language import tr


def save_run(run: Run, path: Path) -> None:
    """Write the run in one step: what stood in the file before stays until all of it is there. Raises TraceError."""
    try:
        with atomic_write(path) as part:
            _write_recording(run, part)
    except OSError as error:
        raise _write_error(path, error) from None


def _write_recording(run: Run, path: Path) -> None:
    from core.trace import Failure, Recorder

    recorder = Recorder(path, run.request, {WINDOW_REQUEST_KEY: request_to_json(run.request)})
    for event in run.events:
        recorder.write(event)
    error = run.outcome.error if run.outcome is not None else None
    recorder.close(Failure(error.kind, error.title, error.cause, error.remedy) if error is not None else None)
    if recorder.trouble is not None:
        raise recorder.trouble


def _write_error(path: Path, error: OSError) -> Exception:
    from core.errors import TraceError

    return TraceError(
        tr("{path} cannot be written: {why}.").format(path=path, why=error.strerror or error),
        tr("Choose another folder or another name."),
    )
