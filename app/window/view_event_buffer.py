"""A run reaches a view while it is in sight; what came meanwhile is handed over once it is seen again, or has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer, Slot

from app.session.session import Session
from app.state.run import Run
from app.views.base import View

if TYPE_CHECKING:
    from core.events import Event

END_DELAY_MS = 60
"""After a run's end: what is in sight is drawn before views that nobody sees catch up."""


class ViewEventBuffer(QObject):
    """Hands `view` the session's run and its events. Drawing and the model share the interpreter's lock: what a page
    in the background would do with each run and batch is time that the text waits for."""

    def __init__(self, view: View, session: Session) -> None:
        super().__init__(view)
        self._view = view
        self._run: Run | None = None
        self._events: list[Event] = []
        self._is_new, self._end_delivered = False, True
        """Whether the view has still to learn that this is another run, and whether it knows how that ended."""
        self._end_timer = QTimer(self, singleShot=True, interval=END_DELAY_MS)
        self._end_timer.timeout.connect(self.deliver)
        session.runStarted.connect(self.on_started)
        session.runShown.connect(self.on_shown)
        for signal in (session.cursorMoved, session.selectionChanged):
            signal.connect(self.deliver)
        session.eventsArrived.connect(self.on_events)
        view.installEventFilter(self)

    @Slot(object)
    def on_started(self, run: Run) -> None:
        """A run has begun."""
        self._begin(run)
        self._deliver_if_visible()

    @Slot(object)
    def on_shown(self, run: Run) -> None:
        """A run that ended earlier is shown: nothing is under way that would have to wait."""
        self._begin(run)
        self.deliver()

    @Slot(object, object)
    def on_events(self, run: Run, events: Sequence[Event]) -> None:
        """Now, or when the view is seen."""
        self._run = run
        self._events += events
        self._deliver_if_visible()

    @Slot()
    def deliver(self) -> None:
        """What came while the view was out of sight: before anything else is said of that run."""
        self._end_timer.stop()
        run, events, is_new = self._run, self._events, self._is_new
        self._events, self._is_new = [], False
        if run is None:
            return
        if is_new:
            self._view.show_run(run)
        if events or (run.outcome is not None and not self._end_delivered):
            self._end_delivered = run.outcome is not None
            self._view.events_arrived(run, events)

    def finish(self, run: Run | None) -> None:
        """No more events come; a view that has learnt so with the last of them is told nothing."""
        self._run = run
        if not self._deliver_if_visible():
            self._end_timer.start()

    def _begin(self, run: Run) -> None:
        """Another run is shown, from its beginning."""
        self._end_timer.stop()
        self._run, self._events, self._is_new, self._end_delivered = run, [], True, run.outcome is not None

    def _deliver_if_visible(self) -> bool:
        is_seen = self._view.isVisibleTo(self._view.window())
        if is_seen:
            self.deliver()
        return is_seen

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The view comes into sight."""
        if event.type() == QEvent.Type.Show:
            self.deliver()
        return False
