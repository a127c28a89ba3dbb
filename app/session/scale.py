"""What the Scale lab's pages run beside the window: it outlives their room, and no process of it the window."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal, Slot

from app.session.background_task import BackgroundTask
from app.session.task_manager import TaskManager
from app.state.scale import ScaleRequest
from app.state.worker_messages import ErrorReport, make_error_report
from core.errors import DecodescopeError, UnforeseenError
from core.labs import scale
from resources.language import tr


@dataclass
class ScaleRun:
    """What was asked, what it has told so far, and how it ended."""

    request: ScaleRequest
    events: list[object] = field(default_factory=list)
    error: ErrorReport | None = None
    is_running: bool = True


class ScaleJobs(QObject):
    """A run at a time for each page, by the page's name. `arrived(page, event)` with events of `core.labs.scale`;
    `ended(page)` once nothing follows."""

    started = Signal(str)
    arrived = Signal(str, object)
    ended = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = TaskManager(self)
        self._tasks.ended.connect(self._on_ended)
        self.runs: dict[str, ScaleRun] = {}
        """The last one of each page."""

    def start(self, page: str, request: ScaleRequest) -> None:
        """Begin, unless one of that page is under way."""
        if self._tasks.is_running(page):
            return
        run = self.runs[page] = ScaleRun(request)
        self.started.emit(page)
        self._tasks.start(page, lambda errand: self._work(errand, page, run))

    def stop(self, page: str) -> None:
        """End its processes; `ended` comes when they are gone."""
        self._tasks.stop(page)

    @Slot()
    def stop_all(self) -> None:
        """The room is closed."""
        for page in self.runs:
            self.stop(page)

    def stop_and_wait(self) -> None:
        """The window closes."""
        self._tasks.stop_all()

    def _work(self, task: BackgroundTask, page: str, run: ScaleRun) -> None:
        """On its own thread."""
        try:
            for event in _scale_events(run.request, task.stop_event):
                task.post(self._on_event, page, event)
        except DecodescopeError as error:
            task.post(self._on_error, run, make_error_report(error))
        except Exception as error:
            cause = tr("The lab met something that nothing here foresees.")
            unforeseen = UnforeseenError(cause, "", f"{type(error).__name__}: {error}")
            task.post(self._on_error, run, make_error_report(unforeseen))

    def _on_event(self, page: str, event: object) -> None:
        self.runs[page].events.append(event)
        self.arrived.emit(page, event)

    def _on_error(self, run: ScaleRun, error: ErrorReport) -> None:
        run.error = error

    @Slot(str)
    def _on_ended(self, page: str) -> None:
        self.runs[page].is_running = False
        self.ended.emit(page)


def _scale_events(request: ScaleRequest, cancel: threading.Event) -> Iterator[object]:
    if request.scheme == scale.ZERO_R:
        yield from scale.remembering(request.model, request.processes, cancel=cancel)
    else:
        yield from scale.measuring(
            request.model, request.scheme, request.processes, options=request.options, cancel=cancel
        )
