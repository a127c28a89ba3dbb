"""The text read to a screen reader as it comes: whole words, a breath apart, never further than the cursor."""

from __future__ import annotations

import re

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from app.session.session import Session
from app.state.worker_messages import Outcome
from app.widgets.accessibility import announce

ANNOUNCE_INTERVAL_MS = 1500
"""Between two announcements; what comes meanwhile is said in one."""
_SENTENCE = r".*[.!?…\n](?=\s|$)|.*[。！？；]"
_WORD = r".*\s|.*[\u3040-\u30ff\u3400-\u9fff，、]"


def complete_prefix(text: str) -> str:
    """As much of `text` as ends with a sentence, else with a word; nothing where neither has ended."""
    match = re.match(_SENTENCE, text, re.DOTALL) or re.match(_WORD, text, re.DOTALL)
    return match[0] if match else ""


class ScreenReaderText(QObject):
    """Follows the session's run. Does nothing while no screen reader is at work."""

    def __init__(self, session: Session, over: QWidget) -> None:
        super().__init__(over)
        self._session, self._over = session, over
        self._announced_count, self._pending = 0, ""
        self._timer = QTimer(self, singleShot=True, interval=ANNOUNCE_INTERVAL_MS)
        self._timer.timeout.connect(self._announce)
        session.runStarted.connect(self._begin)
        session.runShown.connect(self._skip_existing)
        session.eventsArrived.connect(self._follow)
        session.cursorMoved.connect(self._follow)
        session.finished.connect(self._end)

    @Slot()
    def _begin(self) -> None:
        self._timer.stop()
        self._announced_count, self._pending = 0, ""

    @Slot()
    def _skip_existing(self) -> None:
        """What was written earlier is read when it is gone to, not all at once."""
        self._begin()
        run = self._session.run
        self._announced_count = len(run.tokens) if run is not None else 0

    @Slot()
    def _follow(self) -> None:
        run = self._session.run
        if run is None or not QAccessible.isActive() or (run.beams is not None and run.outcome is None):
            return  # a search changes its mind: its text is read when it is done
        self._pending += "".join(token.text for token in run.tokens[self._announced_count : run.cursor])
        self._announced_count = max(self._announced_count, run.cursor)
        if self._pending and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _announce(self) -> None:
        words = complete_prefix(self._pending)
        self._pending = self._pending[len(words) :]
        announce(self._over, words.strip())

    @Slot(object)
    def _end(self, outcome: Outcome) -> None:
        self._follow()
        self._timer.stop()
        ending = outcome.message if outcome.error is None else ""  # an error has its banner, which speaks for itself
        announce(self._over, f"{self._pending.strip()} {ending}".strip())
        self._pending = ""
