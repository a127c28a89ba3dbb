"""Keeps in sight that something was set otherwise since the run that is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.control.requests import RequestBuilder
from app.panels.status_line import StatusLine
from app.session.session import Session
from app.state.setting_changes import SettingChange, list_changes
from app.state.worker_messages import RunRequest

if TYPE_CHECKING:
    from app.control.what_if import WhatIfController


START_DELAY_MS = 60
"""Behind a run's beginning."""


class SettingsChangeWatcher(QObject):
    """Compares what is set with the last run's request, once for every turn of the event loop in which it changed.
    `grammarSet(grammar)`: new runs are held to another one, None for none."""

    grammarSet = Signal(object)

    def __init__(
        self,
        session: Session,
        requests: RequestBuilder,
        status: StatusLine,
        make_what_if: Callable[[], WhatIfController],
    ) -> None:
        super().__init__(status)
        self._session, self._requests, self._status = session, requests, status
        self._make_what_if = make_what_if
        self._grammar: object = None
        self._what_if: WhatIfController | None = None
        """What if: made when something is set otherwise while a step is selected."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._check)
        session.runStarted.connect(self._on_run_started)
        session.runShown.connect(self.schedule_check)
        session.selectionChanged.connect(self.schedule_check)

    @property
    def changes(self) -> list[SettingChange]:
        """What is set otherwise now; empty before the first run."""
        return self._changes(self._requests.current_request())

    def _changes(self, now: RunRequest) -> list[SettingChange]:
        run = self._session.run
        if run is None or run.request.scored:  # what is set has no part in a score
            return []
        return list_changes(run.request, now)

    @Slot()
    def schedule_check(self) -> None:
        """Something may have changed."""
        self._timer.start(0)

    @Slot()
    def _on_run_started(self) -> None:
        """A run begins, whose text does not wait for this; what is supposed of the one before ends at once."""
        self._timer.start(0 if self._what_if is not None else START_DELAY_MS)

    @Slot()
    def _check(self) -> None:
        now = self._requests.current_request()
        if (grammar := now.grammar) != self._grammar:
            self._grammar = grammar
            self.grammarSet.emit(grammar)
        changes = self._changes(now)
        self._status.show_changes(changes)
        run = self._session.run
        if self._what_if is None and changes and run is not None and run.selected is not None:
            self._what_if = self._make_what_if()
        if self._what_if is not None:
            self._what_if.update_result()
