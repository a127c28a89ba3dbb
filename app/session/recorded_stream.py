"""Records a run while it is streamed, on the worker thread. A disk error does not end the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from decodescope.app.session.mailbox import Recording
from decodescope.app.state.recorded_run import WINDOW_REQUEST_KEY
from decodescope.app.state.request_json import request_to_json
from decodescope.app.state.worker_messages import ErrorReport, RunRequest, make_error_report

if TYPE_CHECKING:
    from decodescope.core.events import Event
    from decodescope.core.trace import Failure, Recorder


class RunRecorder:
    """Recording of a run to `path`: started, written event by event, and closed after the run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._recorder: Recorder | None = None
        self._error: ErrorReport | None = None
        self._failure: Failure | None = None

    def start(self, request: RunRequest) -> None:
        """Start the recording with the prepared request."""
        from decodescope.core.errors import TraceError
        from decodescope.core.trace import Recorder

        try:
            self._recorder = Recorder(self._path, request, {WINDOW_REQUEST_KEY: request_to_json(request)})
        except TraceError as error:
            self._error = make_error_report(error)

    def write(self, event: Event) -> None:
        """Write an event; buffered and cheap."""
        if self._recorder is not None:
            self._recorder.write(event)

    def fail(self, error: BaseException) -> None:
        """Record the exception of the run."""
        from decodescope.core.trace import failure_of

        self._failure = failure_of(error)

    def close(self) -> Recording:
        """Write the rest and return the recording, with an error if incomplete."""
        recorder = self._recorder
        if recorder is not None:
            recorder.close(self._failure)
            if recorder.trouble is not None:
                self._error = make_error_report(recorder.trouble)
        return Recording(self._path, self._error)
