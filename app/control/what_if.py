"""What if: whatever is set otherwise while a step is selected is tried on that step at once, before it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.control.requests import RequestBuilder
from app.control.settings_setup import SetupController
from app.session.session import Session
from app.state.what_if import back, supposition
from app.state.worker_messages import StepReplayRequest
from app.views.inspector.panel import Inspector
from app.views.inspector.what_if import WhatIfContent

if TYPE_CHECKING:
    from app.session.mailbox import Answer


class WhatIfController(QObject):
    """Asks the worker one question at a time, always the latest, and has the inspector show what comes of it."""

    def __init__(
        self, session: Session, requests: RequestBuilder, setup: SetupController, inspector: Inspector
    ) -> None:
        super().__init__(inspector)
        self._session, self._requests, self._setup, self._inspector = session, requests, setup, inspector
        self._wanted: StepReplayRequest | None = None
        self._asked: StepReplayRequest | None = None
        session.answered.connect(self._on_answer)
        session.finished.connect(self.look)
        inspector.backWanted.connect(self._back)

    @Slot()
    def look(self) -> None:
        """What is set, selected or shown may be another."""
        run = self._session.run
        wanted = None if self._session.busy else supposition(run, self._requests.as_set())
        if wanted == self._wanted:
            return
        self._wanted = wanted
        if wanted is None:
            self._inspector.show_supposed(None)
        else:
            self._ask()

    def _ask(self) -> None:
        if self._asked is None and self._wanted is not None:
            self._asked = self._wanted
            self._session.ask(self._wanted)

    @Slot(object)
    def _on_answer(self, answer: Answer) -> None:
        asked = self._asked
        if asked is None or answer.request is not asked:
            return
        self._asked = None
        if asked == self._wanted:
            self._inspector.show_supposed(WhatIfContent.of(asked, answer))
        else:
            self._ask()

    @Slot()
    def _back(self) -> None:
        """Set what the run had."""
        if self._wanted is not None:
            self._setup.set_more_values(back(self._wanted))
