"""Recording a run as it is streamed, on the worker's thread. A disk that refuses does not end the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from app.state.recorded import WINDOWS
from app.state.request_json import to_plain
from app.state.requests import ErrorReport, RunRequest, report

if TYPE_CHECKING:
    from core.events import Event


class Recorded:
    """The events of a run, which are written to `path` as they pass; `trouble` says why they could not all be."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.trouble: ErrorReport | None = None

    def events(self, stream: Iterator[Event], request: RunRequest) -> Iterator[Event]:
        """`stream`, passed on."""
        import core
        from core.errors import TraceError

        try:
            kept = core.record(self._path, stream, request, extra={WINDOWS: to_plain(request)})
        except TraceError as error:
            self.trouble = report(error)
            kept = stream
        try:
            yield from kept
        except TraceError as error:  # comes behind the last event
            self.trouble = report(error)
