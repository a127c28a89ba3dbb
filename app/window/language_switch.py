"""The language chosen while the program runs: at once, or as soon as nothing is under way."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.session.session import Session
from app.storage.settings import AppearanceSection
from app.theme.language import resolve_language, set_language
from resources import language

IDLE = "idle"


class LanguageSwitch(QObject):
    """`rebuildRequested`: everything seen is to be made anew in the language that is spoken from now on. `pendingChanged(bool)`: it is
    put off until what is under way has ended, or that is over. `languageChosen` when another is chosen."""

    rebuildRequested = Signal()
    pendingChanged = Signal(bool)
    languageChosen = Signal(str)

    def __init__(self, settings: AppearanceSection, session: Session, override: str = "") -> None:
        super().__init__(session)
        self._settings, self._session, self._override = settings, session, override
        self._is_waiting = False
        session.stateChanged.connect(self._switch_when_idle)

    @property
    def choice(self) -> str:
        """What is chosen: as the command line named it, this time, or as the settings have it."""
        return self._override or self._settings.language

    @Slot(str)
    def choose(self, choice: str) -> None:
        """Speak that language (a choice of the settings) from now on, and at the next start."""
        self._override, self._settings.language = "", choice
        self.languageChosen.emit(choice)
        self._switch_when_idle()

    @Slot()
    def _switch_when_idle(self) -> None:
        """Not now, but in a turn of its own: whoever asks is among what is made anew."""
        is_due = resolve_language(self.choice) != language.current_language()
        is_waiting = is_due and self._session.state != IDLE
        if is_waiting != self._is_waiting:
            self._is_waiting = is_waiting
            self.pendingChanged.emit(is_waiting)
        if is_due and not is_waiting:
            QTimer.singleShot(0, self, self._switch)

    @Slot()
    def _switch(self) -> None:
        if resolve_language(self.choice) != language.current_language() and self._session.state == IDLE:
            set_language(self.choice)
            self.rebuildRequested.emit()
