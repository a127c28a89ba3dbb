"""The language chosen while the program runs: at once, or as soon as nothing is under way."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.session.session import Session
from app.storage.settings import Appearance
from app.theme.language import code_of, speak
from resources import language

SETTLED = "idle"


class LanguageSwitch(QObject):
    """`wanted`: everything seen is to be made anew in the language that is spoken from now on. `waits(bool)`: it is
    put off until what is under way has ended, or that is over. `chosen` when another is chosen."""

    wanted = Signal()
    waits = Signal(bool)
    chosen = Signal(str)

    def __init__(self, kept: Appearance, session: Session, named: str = "") -> None:
        super().__init__(session)
        self._kept, self._session, self._named = kept, session, named
        self._is_waiting = False
        session.stateChanged.connect(self._look)

    @property
    def choice(self) -> str:
        """What is chosen: as the command line named it, this time, or as the settings have it."""
        return self._named or self._kept.language

    @Slot(str)
    def choose(self, choice: str) -> None:
        """Speak that language (a choice of the settings) from now on, and at the next start."""
        self._named, self._kept.language = "", choice
        self.chosen.emit(choice)
        self._look()

    @Slot()
    def _look(self) -> None:
        """Not now, but in a turn of its own: whoever asks is among what is made anew."""
        is_due = code_of(self.choice) != language.current()
        is_waiting = is_due and self._session.state != SETTLED
        if is_waiting != self._is_waiting:
            self._is_waiting = is_waiting
            self.waits.emit(is_waiting)
        if is_due and not is_waiting:
            QTimer.singleShot(0, self, self._switch)

    @Slot()
    def _switch(self) -> None:
        if code_of(self.choice) != language.current() and self._session.state == SETTLED:
            speak(self.choice)
            self.wanted.emit()
