"""Screen reader announcements of generated text: whole words, at intervals, never past the cursor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from decodescope import core
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import Outcome
from decodescope.app.storage.settings import AppearanceSection
from decodescope.app.widgets.accessibility import announce

if TYPE_CHECKING:
    from decodescope.app.widgets.sound_player import CuePlayer
    from decodescope.core.events import DraftRound, Event

ANNOUNCE_INTERVAL_MS = 1500
"""Minimum time between two announcements."""
_SENTENCE = r".*[.!?…\n](?=\s|$)|.*[。！？；]"
_WORD = r".*\s|.*[\u3040-\u30ff\u3400-\u9fff，、]"


def complete_prefix(text: str) -> str:
    """Return the longest prefix of `text` that ends with a sentence, else with a word, else an empty string."""
    match = re.match(_SENTENCE, text, re.DOTALL) or re.match(_WORD, text, re.DOTALL)
    return match[0] if match else ""


class ScreenReaderText(QObject):
    """Announces the session's run. Does nothing without an active screen reader."""

    def __init__(self, session: Session, parent_window: QWidget) -> None:
        super().__init__(parent_window)
        self._session, self._parent_window = session, parent_window
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
        """Do not announce text that was generated earlier."""
        self._begin()
        run = self._session.run
        self._announced_count = len(run.tokens) if run is not None else 0

    @Slot()
    def _follow(self) -> None:
        run = self._session.run
        if run is None or not QAccessible.isActive() or (run.beams is not None and run.outcome is None):
            return  # beams change: announce the text only at the end
        self._pending += "".join(token.text for token in run.tokens[self._announced_count : run.cursor])
        self._announced_count = max(self._announced_count, run.cursor)
        if self._pending and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _announce(self) -> None:
        words = complete_prefix(self._pending)
        self._pending = self._pending[len(words) :]
        announce(self._parent_window, words.strip())

    @Slot(object)
    def _end(self, outcome: Outcome) -> None:
        self._follow()
        self._timer.stop()
        ending = outcome.message if outcome.error is None else ""  # an error is announced by its banner
        announce(self._parent_window, f"{self._pending.strip()} {ending}".strip())
        self._pending = ""


class SoundEffectController(QObject):
    """Plays sounds while they are enabled; the player is created on first use."""

    def __init__(self, session: Session, appearance: AppearanceSection, parent_window: QObject) -> None:
        """Connects to the session as long as `parent_window` exists."""
        super().__init__(parent_window)
        self._session, self._appearance = session, appearance
        self._player: CuePlayer | None = None
        self._is_connected = self._is_presenting = False
        self.follow_settings()

    @Slot()
    def follow_settings(self) -> None:
        """Connect or disconnect according to the settings."""
        if self._appearance.sounds == self._is_connected:
            return
        self._is_connected = self._appearance.sounds
        if self._is_connected:
            self._session.eventsArrived.connect(self._on_events)
            self._session.finished.connect(self._on_finished)
        else:
            self._session.eventsArrived.disconnect(self._on_events)
            self._session.finished.disconnect(self._on_finished)

    @Slot(bool)
    def set_presenting(self, on: bool) -> None:
        """Play sounds during playback instead of generation when presenting."""
        self._is_presenting = on

    @Slot(str)
    def play(self, name: str) -> None:
        """Play a sound if sounds are enabled."""
        if not self._appearance.sounds:
            return
        if self._player is None:
            from decodescope.app.widgets.sound_player import CuePlayer

            self._player = CuePlayer()
        self._player.play(name)

    @Slot(object, object)
    def _on_events(self, _run: Run, events: Sequence[Event]) -> None:
        rounds = [event for event in events if isinstance(event, core.events.DraftRound)]
        if rounds and not self._is_presenting:
            self.play(sound_name(rounds[-1]))

    @Slot(object)
    def _on_finished(self, outcome: Outcome) -> None:
        if outcome.kind != "failed" and not self._is_presenting:
            self.play("finished")


def sound_name(entry: DraftRound) -> str:
    """Return the sound of a round: "refused" if any of its tokens was rejected."""
    return "refused" if entry.extra_kind == "correction" else "accepted"
