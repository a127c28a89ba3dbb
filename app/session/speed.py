"""The Speed lab's measurement beside the window: it outlives its room."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.session.background_task import BackgroundTask, report_of
from app.session.task_manager import TaskManager
from app.state.speed import Speeds
from app.state.worker_messages import ErrorReport
from core.labs import speed

_WORK = "speed"


class SpeedWork(QObject):
    """One measurement at a time. `changed` whenever something came of it, `ended` once nothing follows."""

    changed = Signal()
    ended = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._errands = TaskManager(self)
        self._errands.ended.connect(self._on_ended)
        self.speeds = Speeds()
        """What the last one told."""

    def start(self, asked: speed.Asked) -> None:
        """Begin anew; nothing while one is under way."""
        if self._errands.is_under_way(_WORK):
            return
        self.speeds = Speeds()
        self.speeds.is_running = True
        self._errands.send(_WORK, lambda errand: self._work(errand, asked))
        self.changed.emit()

    @Slot()
    def stop(self) -> None:
        """End its processes; what was measured stays."""
        self._errands.stop(_WORK)

    def end(self) -> None:
        """The window closes."""
        self._errands.end()

    def _work(self, errand: BackgroundTask, asked: speed.Asked) -> None:
        """On its own thread."""
        try:
            for event in speed.measuring(asked, errand.stop):
                errand.tell(self._on_event, event)
        except Exception as error:
            errand.tell(self._on_error, report_of(error))

    def _on_event(self, event: speed.Event) -> None:
        self.speeds.take(event)
        self.changed.emit()

    def _on_error(self, error: ErrorReport) -> None:
        self.speeds.error = error

    @Slot(str)
    def _on_ended(self, _name: str) -> None:
        self.speeds.is_running, self.speeds.now = False, None
        self.changed.emit()
        self.ended.emit()
