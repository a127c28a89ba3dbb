"""What if: whatever is set otherwise while a step is selected is tried on that step at once, before it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.control.requests import RequestBuilder
from app.control.settings_setup import SettingsController
from app.session.session import Session
from app.state.what_if import make_replay_request, original_settings
from app.state.worker_messages import StepReplayRequest
from app.views.inspector.panel import Inspector
from app.views.inspector.what_if import WhatIfContent

if TYPE_CHECKING:
    from app.session.mailbox import Answer


class WhatIfController(QObject):
    """Asks the worker one question at a time, always the latest, and has the inspector show what comes of it."""

    def __init__(
        self, session: Session, requests: RequestBuilder, setup: SettingsController, inspector: Inspector
    ) -> None:
        super().__init__(inspector)
        self._session, self._requests, self._setup, self._inspector = session, requests, setup, inspector
        self._latest_request: StepReplayRequest | None = None
        self._pending_request: StepReplayRequest | None = None
        session.answered.connect(self._on_answer)
        session.finished.connect(self.update_result)
        inspector.backWanted.connect(self._restore_values)

    @Slot()
    def update_result(self) -> None:
        """What is set, selected or shown may be another."""
        run = self._session.run
        request = None if self._session.busy else make_replay_request(run, self._requests.current_request())
        if request == self._latest_request:
            return
        self._latest_request = request
        if request is None:
            self._inspector.show_what_if(None)
        else:
            self._send_request()

    def _send_request(self) -> None:
        if self._pending_request is None and self._latest_request is not None:
            self._pending_request = self._latest_request
            self._session.request(self._latest_request)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        request = self._pending_request
        if request is None or answer.request is not request:
            return
        self._pending_request = None
        if request == self._latest_request:
            self._inspector.show_what_if(WhatIfContent.from_answer(request, answer))
        else:
            self._send_request()

    @Slot()
    def _restore_values(self) -> None:
        """Set what the run had."""
        if self._latest_request is not None:
            self._setup.update_values(original_settings(self._latest_request))
