"""Which sounds a run makes: a draft accepted or refused, and the end. On a stage they follow what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

import core
from app.session.session import Session
from app.state.run import Run
from app.state.worker_messages import Outcome
from app.storage.settings import AppearanceSection

if TYPE_CHECKING:
    from app.widgets.sound_player import CuePlayer
    from core.events import DraftRound, Event


class SoundEffectController(QObject):
    """Listens only while the settings want sounds; the player is made with the first."""

    def __init__(self, session: Session, appearance: AppearanceSection, over: QObject) -> None:
        """It listens as long as `over` is there."""
        super().__init__(over)
        self._session, self._appearance = session, appearance
        self._player: CuePlayer | None = None
        self._is_connected = self._is_presenting = False
        self.follow_settings()

    @Slot()
    def follow_settings(self) -> None:
        """Begin to listen, or cease to."""
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
        """On a stage a run is heard when it is shown, not while it is written behind the scenes."""
        self._is_presenting = on

    @Slot(str)
    def play(self, name: str) -> None:
        """Let that cue be heard, if sounds are wanted."""
        if not self._appearance.sounds:
            return
        if self._player is None:
            from app.widgets.sound_player import CuePlayer

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
    """What a round sounds like: refused as soon as one of its tokens was."""
    return "refused" if entry.extra_kind == "correction" else "accepted"
