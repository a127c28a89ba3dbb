"""What the Scale lab's pages run beside the window: it outlives their room, and no process of it the window."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal, Slot

from app.session.background_task import BackgroundTask
from app.session.task_manager import TaskManager
from app.state.scale import ScaleRequest
from app.state.worker_messages import ErrorReport, report
from core.errors import DecodescopeError, UnforeseenError
from core.labs import scale
from resources.language import tr


@dataclass
class ScaleRun:
    """What was asked, what it has told so far, and how it ended."""

    asked: ScaleRequest
    told: list[object] = field(default_factory=list)
    error: ErrorReport | None = None
    is_under_way: bool = True


class ScaleWork(QObject):
    """A run at a time for each page, by the page's name. `arrived(page, event)` with events of `core.labs.scale`;
    `ended(page)` once nothing follows."""

    began = Signal(str)
    arrived = Signal(str, object)
    ended = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._errands = TaskManager(self)
        self._errands.ended.connect(self._on_ended)
        self.runs: dict[str, ScaleRun] = {}
        """The last one of each page."""

    def start(self, page: str, asked: ScaleRequest) -> None:
        """Begin, unless one of that page is under way."""
        if self._errands.is_under_way(page):
            return
        run = self.runs[page] = ScaleRun(asked)
        self.began.emit(page)
        self._errands.send(page, lambda errand: self._work(errand, page, run))

    def stop(self, page: str) -> None:
        """End its processes; `ended` comes when they are gone."""
        self._errands.stop(page)

    @Slot()
    def stop_all(self) -> None:
        """The room is closed."""
        for page in self.runs:
            self.stop(page)

    def end(self) -> None:
        """The window closes."""
        self._errands.end()

    def _work(self, errand: BackgroundTask, page: str, run: ScaleRun) -> None:
        """On its own thread."""
        try:
            for event in _events(run.asked, errand.stop):
                errand.tell(self._on_event, page, event)
        except DecodescopeError as error:
            errand.tell(self._on_error, run, report(error))
        except Exception as error:
            cause = tr("The lab met something that nothing here foresees.")
            unforeseen = UnforeseenError(cause, "", f"{type(error).__name__}: {error}")
            errand.tell(self._on_error, run, report(unforeseen))

    def _on_event(self, page: str, event: object) -> None:
        self.runs[page].told.append(event)
        self.arrived.emit(page, event)

    def _on_error(self, run: ScaleRun, error: ErrorReport) -> None:
        run.error = error

    @Slot(str)
    def _on_ended(self, page: str) -> None:
        self.runs[page].is_under_way = False
        self.ended.emit(page)


def _events(asked: ScaleRequest, cancel: threading.Event) -> Iterator[object]:
    if asked.scheme == scale.ZERO_R:
        yield from scale.remembering(asked.model, asked.processes, cancel=cancel)
    else:
        yield from scale.measuring(asked.model, asked.scheme, asked.processes, options=asked.options, cancel=cancel)
