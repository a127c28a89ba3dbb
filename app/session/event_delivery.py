"""From the worker into the `Run` under way: the request as it is run, and events in batches that leave time to work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.session.delivery_rate import DeliveryRate
from app.session.mailbox import WorkerJob
from app.state.run import Run
from app.state.worker_messages import RunRequest
from core.lightweight_dataclass import plain

if TYPE_CHECKING:
    from core.events import Event


@plain(frozen=True, eq=False)
class RunInProgress:
    """A run that the worker is busy with, on both sides; a silent one is measured and not shown."""

    job: WorkerJob
    run: Run
    is_silent: bool = False


class EventDelivery(QObject):
    """`arrived(run, events)` for each batch of a run that is shown; `trimmed(run)`: its request is shorter."""

    arrived = Signal(object, object)
    trimmed = Signal(object)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._current: RunInProgress | None = None
        self._rate = DeliveryRate()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.deliver)

    def begin(self, underway: RunInProgress) -> None:
        """Deliver the events of this run from now on."""
        self._current = underway
        self._rate.begin()

    def finish(self) -> list[Event]:
        """What is left, in the run already: it is told together with the run's end. Nothing comes any more."""
        self._timer.stop()
        events = self._apply_new_events()
        self._current = None
        return events

    @Slot(int, object)
    def on_prepared(self, number: int, request: RunRequest) -> None:
        """The worker has left out the turns of a chat that have no place."""
        underway = self._current
        if underway is not None and number == underway.job.number:
            underway.run.request = request
            if not underway.is_silent:
                self.trimmed.emit(underway.run)

    @Slot(int)
    def on_mail(self, number: int) -> None:
        """There is something in the mailbox of that job."""
        if self._current is None or number != self._current.job.number:
            return
        wait = 0.0 if self._current.job.mailbox.is_urgent else self._rate.seconds_until_due()
        if wait <= 0:
            self._timer.stop()
            self.deliver()
        elif not self._timer.isActive():
            self._timer.start(max(1, round(wait * 1000)))

    @Slot()
    def deliver(self) -> None:
        """Hand over everything that has come."""
        events = self._apply_new_events()
        if events and self._current is not None and not self._current.is_silent:
            self.arrived.emit(self._current.run, events)

    def _apply_new_events(self) -> list[Event]:
        """Everything that has come, in the run from now on."""
        if self._current is None:
            return []
        events = self._current.job.mailbox.take()
        if events:
            self._rate.record_batch()
            self._current.run.apply(events)
        return events
