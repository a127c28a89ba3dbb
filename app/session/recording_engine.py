"""`--record`: the run that the command line starts is written to a file while it goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from app.session.engine import Engine
from app.session.engine_proxy import EngineProxy
from app.state.recorded_run import WINDOW_REQUEST_KEY
from app.state.request_json import request_to_json
from app.state.worker_messages import RunRequest

if TYPE_CHECKING:
    from core.events import Event


class RecordingEngine(EngineProxy):
    """Another engine, whose first run is recorded; a record that cannot be written is that run's error."""

    def __init__(self, engine: Engine, path: Path) -> None:
        super().__init__(engine)
        self._path: Path | None = path

    def stream(self, request: RunRequest, cancel: threading.Event) -> Iterator[Event]:
        """The run's events. Raises TraceError where the file cannot be made."""
        path, self._path = self._path, None
        events = super().stream(request, cancel)
        if path is None:
            return events
        import core

        return core.record(path, events, request, extra={WINDOW_REQUEST_KEY: request_to_json(request)})
