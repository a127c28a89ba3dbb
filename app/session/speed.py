"""The Speed lab's measurement beside the window: it outlives its room."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.session.background_task import BackgroundTask, error_report
from app.session.task_manager import TaskManager
from app.state.speed import SpeedResults
from app.state.worker_messages import ErrorReport
from core.labs import speed

_SPEED = "speed"


class SpeedJobs(QObject):
    """One measurement at a time. `changed` whenever something came of it, `ended` once nothing follows."""

    changed = Signal()
    ended = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks = TaskManager(self)
        self._tasks.ended.connect(self._on_ended)
        self.speeds = SpeedResults()
        """What the last one told."""

    def start(self, request: speed.Asked) -> None:
        """Begin anew; nothing while one is under way."""
        if self._tasks.is_running(_SPEED):
            return
        self.speeds = SpeedResults()
        self.speeds.is_running = True
        self._tasks.start(_SPEED, lambda errand: self._work(errand, request))
        self.changed.emit()

    @Slot()
    def stop(self) -> None:
        """End its processes; what was measured stays."""
        self._tasks.stop(_SPEED)

    def stop_and_wait(self) -> None:
        """The window closes."""
        self._tasks.stop_all()

    def _work(self, task: BackgroundTask, request: speed.Asked) -> None:
        """On its own thread."""
        try:
            for event in speed.measuring(request, task.stop_event):
                task.post(self._on_event, event)
        except Exception as error:
            task.post(self._on_error, error_report(error))

    def _on_event(self, event: speed.Event) -> None:
        self.speeds.process(event)
        self.changed.emit()

    def _on_error(self, error: ErrorReport) -> None:
        self.speeds.error = error

    @Slot(str)
    def _on_ended(self, _name: str) -> None:
        self.speeds.is_running, self.speeds.current = False, None
        self.changed.emit()
        self.ended.emit()
