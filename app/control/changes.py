"""Keeps in sight that something was set otherwise since the run that is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.control.requests import RequestBuilder
from app.panels.status_line import StatusLine
from app.session.session import Session
from app.state.changes import Change, changes

if TYPE_CHECKING:
    from app.control.supposing import Supposer


class ChangeWatch(QObject):
    """Compares what is set with the last run's request, once for every turn of the event loop in which it changed.
    `grammarSet(grammar)`: new runs are held to another one, None for none."""

    grammarSet = Signal(object)

    def __init__(
        self, session: Session, requests: RequestBuilder, status: StatusLine, make_supposer: Callable[[], Supposer]
    ) -> None:
        super().__init__(status)
        self._session, self._requests, self._status = session, requests, status
        self._make_supposer = make_supposer
        self._grammar: object = None
        self._supposer: Supposer | None = None
        """What if: made when something is set otherwise while a step is selected."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._look)
        session.runStarted.connect(self.look)
        session.runShown.connect(self.look)
        session.selectionChanged.connect(self.look)

    @property
    def changes(self) -> list[Change]:
        """What is set otherwise now; empty before the first run."""
        run = self._session.run
        if run is None or run.request.scored:  # what is set has no part in a score
            return []
        return changes(run.request, self._requests.as_set())

    @Slot()
    def look(self) -> None:
        """Something may have changed."""
        self._timer.start(0)

    @Slot()
    def _look(self) -> None:
        if (grammar := self._requests.grammar) != self._grammar:
            self._grammar = grammar
            self.grammarSet.emit(grammar)
        changes = self.changes
        self._status.show_changes(changes)
        run = self._session.run
        if self._supposer is None and changes and run is not None and run.selected is not None:
            self._supposer = self._make_supposer()
        if self._supposer is not None:
            self._supposer.look()
