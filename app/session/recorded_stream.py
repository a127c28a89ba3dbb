"""Recording a run as it is streamed, on the worker's thread. A disk that refuses does not end the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.session.mailbox import Recording
from app.state.recorded_run import WINDOW_REQUEST_KEY
from app.state.request_json import request_to_json
from app.state.worker_messages import ErrorReport, RunRequest, make_error_report

if TYPE_CHECKING:
    from core.events import Event
    from core.trace import Failure, Recorder


class RunRecorder:
    """A run that is written to `path`: begun, event by event, and closed once nobody waits for it any more."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._recorder: Recorder | None = None
        self._error: ErrorReport | None = None
        self._failure: Failure | None = None

    def start(self, request: RunRequest) -> None:
        """The run as it was prepared."""
        from core.errors import TraceError
        from core.trace import Recorder

        try:
            self._recorder = Recorder(self._path, request, {WINDOW_REQUEST_KEY: request_to_json(request)})
        except TraceError as error:
            self._error = make_error_report(error)

    def write(self, event: Event) -> None:
        """One event more; costs next to nothing here and now."""
        if self._recorder is not None:
            self._recorder.write(event)

    def fail(self, error: BaseException) -> None:
        """What the run has raised."""
        from core.trace import failure_of

        self._failure = failure_of(error)

    def close(self) -> Recording:
        """Write what is left; what could not be is its trouble."""
        recorder = self._recorder
        if recorder is not None:
            recorder.close(self._failure)
            if recorder.trouble is not None:
                self._error = make_error_report(recorder.trouble)
        return Recording(self._path, self._error)
