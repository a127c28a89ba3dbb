"""Theme, text size and depth of words of the whole window, as the settings have them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication

from app.session.session import Session
from app.storage import settings
from app.storage.settings import MAX_SCALE, MIN_SCALE, AppearanceSection
from app.theme.language import resolve_language, set_language
from app.theme.theme import Theme, theme_for
from resources import depth, language

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


STEP = 0.1


class AppearanceController(QObject):
    """`changed(Theme)`: everything is to be drawn in it. `wordsChanged`: what is shown is to be said again."""

    changed = Signal(object)
    wordsChanged = Signal()

    def __init__(self, appearance_settings: settings.AppearanceSection, parent: QObject) -> None:
        super().__init__(parent)
        self._settings = appearance_settings
        self.theme: Theme = self.settings_theme
        self._stage_theme: Callable[[Theme], Theme] | None = None
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme_changed)

    @Slot()
    def apply(self) -> None:
        """Draw everything in the theme and text size of the settings, and speak as they say."""
        self.theme = self.settings_theme if self._stage_theme is None else self._stage_theme(self.settings_theme)
        self._apply_depth()
        self.changed.emit(self.theme)

    def _apply_depth(self) -> None:
        if depth.current_depth() != self._settings.depth:
            depth.set_depth(self._settings.depth)
            self.wordsChanged.emit()

    def set_depth(self, name: str) -> None:
        """Explain in plain, usual or exact words: one of `resources.depth.DEPTHS`."""
        self._settings.depth = name
        self._apply_depth()

    @Slot()
    def set_plain_words(self) -> None:
        """Without a technical word."""
        self.set_depth(depth.PLAIN)

    @Slot()
    def set_usual_words(self) -> None:
        """In the field's words."""
        self.set_depth(depth.USUAL)

    @Slot()
    def set_exact_words(self) -> None:
        """With symbols and full figures."""
        self.set_depth(depth.EXACT)

    @property
    def settings_theme(self) -> Theme:
        """The theme of the settings, whatever is on a stage."""
        return theme_for(self._settings.theme, self._settings.font_scale)

    def should_animate(self) -> bool:
        """Whether choices may be seen happening: unless the settings or the desktop ask for stillness."""
        from app.widgets.animation.motion import prefers_reduced_motion

        return self._settings.animated and not prefers_reduced_motion()

    def set_stage_theme(self, staged: Callable[[Theme], Theme] | None) -> None:
        """Draw everything in what `staged` makes of that theme, from now on; None: in the theme itself."""
        self._stage_theme = staged
        self.apply()

    @Slot(str)
    def set_theme(self, name: str) -> None:
        """Change to the theme `light`, `dark` or `system`."""
        self._settings.theme = name
        self.apply()

    def set_font_scale(self, scale: float) -> None:
        """Change the text size; 1.0 is 100 %. The side panels grow along."""
        self._settings.font_scale = round(min(MAX_SCALE, max(MIN_SCALE, scale)), 2)
        self.apply()

    @Slot()
    def enlarge_text(self) -> None:
        """Ten per cent more."""
        self.set_font_scale(self._settings.font_scale + STEP)

    @Slot()
    def reduce_text(self) -> None:
        """Ten per cent less."""
        self.set_font_scale(self._settings.font_scale - STEP)

    @Slot(int)
    def step_text(self, direction: int) -> None:
        """Ten per cent more for 1, less for -1."""
        self.set_font_scale(self._settings.font_scale + direction * STEP)

    @Slot()
    def reset_text(self) -> None:
        """Back to 100 %."""
        self.set_font_scale(1.0)

    @Slot()
    def _on_system_scheme_changed(self) -> None:
        if self._settings.theme == "system":
            self.apply()
