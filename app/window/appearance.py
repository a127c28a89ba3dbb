"""Theme, text size and explanation level of the whole window, as in the settings."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication

from decodescope.app.session.session import Session
from decodescope.app.storage import settings
from decodescope.app.storage.settings import MAX_SCALE, MIN_SCALE, AppearanceSection
from decodescope.app.theme.language import resolve_language, set_language
from decodescope.app.theme.theme import Theme, theme_for
from decodescope.resources import depth, language

IDLE = "idle"


class LanguageSwitch(QObject):
    """Switches the language. `rebuildRequested`: rebuild the window in the new language; `pendingChanged(bool)`: the
    change is delayed until the session is idle, or no longer; `languageChosen`: another language was chosen.
    """

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
        """The chosen language: that of the command line for this session, else of the settings."""
        return self._override or self._settings.language

    @Slot(str)
    def choose(self, choice: str) -> None:
        """Switch to a language of the settings, now and for later starts."""
        self._override, self._settings.language = "", choice
        self.languageChosen.emit(choice)
        self._switch_when_idle()

    @Slot()
    def _switch_when_idle(self) -> None:
        """Switch soon: not in this call, as the caller is rebuilt too."""
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
    """Applies the appearance settings. `changed(Theme)`: redraw with this theme; `wordingChanged`: update all texts."""

    changed = Signal(object)
    wordingChanged = Signal()

    def __init__(self, appearance_settings: settings.AppearanceSection, parent: QObject) -> None:
        super().__init__(parent)
        self._settings = appearance_settings
        self.theme: Theme = self.settings_theme
        self._stage_theme: Callable[[Theme], Theme] | None = None
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme_changed)

    @Slot()
    def apply(self) -> None:
        """Apply theme, text size and explanation level of the settings."""
        self.theme = self.settings_theme if self._stage_theme is None else self._stage_theme(self.settings_theme)
        self._apply_depth()
        self.changed.emit(self.theme)

    def _apply_depth(self) -> None:
        if depth.current_depth() != self._settings.depth:
            depth.set_depth(self._settings.depth)
            self.wordingChanged.emit()

    def set_depth(self, name: str) -> None:
        """Set the explanation level, one of `resources.depth.DEPTHS`."""
        self._settings.depth = name
        self._apply_depth()

    @Slot()
    def set_plain_words(self) -> None:
        """Explain without technical terms."""
        self.set_depth(depth.PLAIN)

    @Slot()
    def set_usual_words(self) -> None:
        """Explain with the usual technical terms."""
        self.set_depth(depth.USUAL)

    @Slot()
    def set_exact_words(self) -> None:
        """Explain with symbols and exact figures."""
        self.set_depth(depth.EXACT)

    @property
    def settings_theme(self) -> Theme:
        """The theme of the settings, also during a presentation."""
        return theme_for(self._settings.theme, self._settings.font_scale)

    def should_animate(self) -> bool:
        """Return whether choices may be animated, according to the settings and the desktop."""
        from decodescope.app.widgets.animation.motion import prefers_reduced_motion

        return self._settings.animated and not prefers_reduced_motion()

    def set_stage_theme(self, make_stage_theme: Callable[[Theme], Theme] | None) -> None:
        """Transform the theme with `make_stage_theme` from now on; None for the unchanged theme."""
        self._stage_theme = make_stage_theme
        self.apply()

    @Slot(str)
    def set_theme(self, name: str) -> None:
        """Set the theme: `light`, `dark` or `system`."""
        self._settings.theme = name
        self.apply()

    def set_font_scale(self, scale: float) -> None:
        """Set the text scale; 1.0 is 100 %. The side panels scale too."""
        self._settings.font_scale = round(min(MAX_SCALE, max(MIN_SCALE, scale)), 2)
        self.apply()

    @Slot()
    def enlarge_text(self) -> None:
        """Enlarge the text by 10 %."""
        self.set_font_scale(self._settings.font_scale + STEP)

    @Slot()
    def reduce_text(self) -> None:
        """Reduce the text by 10 %."""
        self.set_font_scale(self._settings.font_scale - STEP)

    @Slot(int)
    def step_text(self, direction: int) -> None:
        """Enlarge the text by 10 % for 1, reduce it for -1."""
        self.set_font_scale(self._settings.font_scale + direction * STEP)

    @Slot()
    def reset_text(self) -> None:
        """Reset the text size to 100 %."""
        self.set_font_scale(1.0)

    @Slot()
    def _on_system_scheme_changed(self) -> None:
        if self._settings.theme == "system":
            self.apply()
