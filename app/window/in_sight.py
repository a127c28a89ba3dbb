"""A run's events reach a view while it is in sight; what came meanwhile is handed over once it is seen again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Slot

from app.session.session import Session
from app.state.run import Run
from app.views.base import View

if TYPE_CHECKING:
    from core.events import Event


class InSight(QObject):
    """Hands `view` the events of the session's run. Drawing and the model share the interpreter's lock: what a page
    in the background would do with each batch is time that the text waits for."""

    def __init__(self, view: View, session: Session) -> None:
        super().__init__(view)
        self._view = view
        self._run: Run | None = None
        self._kept: list[Event] = []
        for signal in (session.runStarted, session.runShown):
            signal.connect(self.forget)
        for signal in (session.cursorMoved, session.selectionChanged):
            signal.connect(self.hand_over)
        session.eventsArrived.connect(self.on_events)
        view.installEventFilter(self)

    @Slot(object, object)
    def on_events(self, run: Run, events: Sequence[Event]) -> None:
        """Now, or when the view is seen."""
        self._run = run
        self._kept += events
        if self._view.isVisibleTo(self._view.window()):
            self.hand_over()

    @Slot()
    def hand_over(self) -> None:
        """What came while the view was out of sight: before anything else is said of that run."""
        if self._run is not None and self._kept:
            kept, self._kept = self._kept, []
            self._view.events_arrived(self._run, kept)

    @Slot()
    def forget(self) -> None:
        """Another run is shown, from its beginning."""
        self._run, self._kept = None, []

    def end(self, run: Run | None) -> None:
        """No more events come."""
        self.hand_over()
        if run is not None:
            self._view.events_arrived(run, ())

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The view comes into sight."""
        if event.type() == QEvent.Type.Show:
            self.hand_over()
        return False
