"""Watches the settings for changes since the last run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.control.requests import RequestBuilder
from decodescope.app.panels.status_line import StatusLine
from decodescope.app.session.session import Session
from decodescope.app.state.setting_changes import SettingChange, list_changes
from decodescope.app.state.worker_messages import RunRequest

if TYPE_CHECKING:
    from decodescope.app.control.step_inspection import WhatIfController

START_DELAY_MS = 60
"""Delay after the start of a run."""


class SettingsChangeWatcher(QObject):
    """Compares the settings with the last run's request, at most once per event loop turn. `grammarSet(grammar)`: new
    runs use another grammar, None for none.
    """

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
        """Created when a setting changes while a step is selected."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._check)
        session.runStarted.connect(self._on_run_started)
        session.runShown.connect(self.schedule_check)
        session.selectionChanged.connect(self.schedule_check)

    @property
    def changes(self) -> list[SettingChange]:
        """The changed settings; empty before the first run."""
        return self._changes(self._requests.current_request())

    def _changes(self, now: RunRequest) -> list[SettingChange]:
        run = self._session.run
        if run is None or run.request.scored:  # scores do not depend on these settings
            return []
        return list_changes(run.request, now)

    @Slot()
    def schedule_check(self) -> None:
        """Check for changes soon."""
        self._timer.start(0)

    @Slot()
    def _on_run_started(self) -> None:
        """Delay the check so that the run starts first, unless a What-if result must be cleared at once."""
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
