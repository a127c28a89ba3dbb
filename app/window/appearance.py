"""Theme, text size and depth of words of the whole window, as the settings have them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication

from app.storage import settings
from app.storage.settings import LARGEST_SCALE, SMALLEST_SCALE
from app.theme.theme import Theme, theme_for
from resources import depth

STEP = 0.1


class Appearance(QObject):
    """`changed(Theme)`: everything is to be drawn in it. `wordsChanged`: what is shown is to be said again."""

    changed = Signal(object)
    wordsChanged = Signal()

    def __init__(self, kept: settings.Appearance, parent: QObject) -> None:
        super().__init__(parent)
        self._kept = kept
        self.theme: Theme = self.usual
        self._staged: Callable[[Theme], Theme] | None = None
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme)

    @Slot()
    def apply(self) -> None:
        """Draw everything in the theme and text size of the settings, and speak as they say."""
        self.theme = self.usual if self._staged is None else self._staged(self.usual)
        self._speak()
        self.changed.emit(self.theme)

    def _speak(self) -> None:
        if depth.current() != self._kept.depth:
            depth.use(self._kept.depth)
            self.wordsChanged.emit()

    def set_depth(self, name: str) -> None:
        """Explain in plain, usual or exact words: one of `resources.depth.DEPTHS`."""
        self._kept.depth = name
        self._speak()

    @Slot()
    def speak_plainly(self) -> None:
        """Without a technical word."""
        self.set_depth(depth.PLAIN)

    @Slot()
    def speak_as_usual(self) -> None:
        """In the field's words."""
        self.set_depth(depth.USUAL)

    @Slot()
    def speak_exactly(self) -> None:
        """With symbols and full figures."""
        self.set_depth(depth.EXACT)

    @property
    def usual(self) -> Theme:
        """The theme of the settings, whatever is on a stage."""
        return theme_for(self._kept.theme, self._kept.font_scale)

    def animates(self) -> bool:
        """Whether choices may be seen happening: unless the settings or the desktop ask for stillness."""
        from app.widgets.animation.allowed import system_reduces

        return self._kept.animated and not system_reduces()

    def stage(self, staged: Callable[[Theme], Theme] | None) -> None:
        """Draw everything in what `staged` makes of that theme, from now on; None: in the theme itself."""
        self._staged = staged
        self.apply()

    @Slot(str)
    def set_theme(self, name: str) -> None:
        """Change to the theme `light`, `dark` or `system`."""
        self._kept.theme = name
        self.apply()

    def set_font_scale(self, scale: float) -> None:
        """Change the text size; 1.0 is 100 %. The side panels grow along."""
        self._kept.font_scale = round(min(LARGEST_SCALE, max(SMALLEST_SCALE, scale)), 2)
        self.apply()

    @Slot()
    def enlarge_text(self) -> None:
        """Ten per cent more."""
        self.set_font_scale(self._kept.font_scale + STEP)

    @Slot()
    def reduce_text(self) -> None:
        """Ten per cent less."""
        self.set_font_scale(self._kept.font_scale - STEP)

    @Slot(int)
    def step_text(self, direction: int) -> None:
        """Ten per cent more for 1, less for -1."""
        self.set_font_scale(self._kept.font_scale + direction * STEP)

    @Slot()
    def reset_text(self) -> None:
        """Back to 100 %."""
        self.set_font_scale(1.0)

    @Slot()
    def _on_system_scheme(self) -> None:
        if self._kept.theme == "system":
            self.apply()
