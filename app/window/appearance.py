"""Theme and text size of the whole window, as the settings have them."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication

from app.panels.appearance_menu import AppearanceMenu
from app.storage import settings
from app.storage.settings import LARGEST_SCALE, SMALLEST_SCALE
from app.theme.theme import Theme, theme_for

STEP = 0.1


class Appearance(QObject):
    """`changed(Theme)`: everything is to be drawn in it."""

    changed = Signal(object)

    def __init__(self, kept: settings.Appearance, menu: AppearanceMenu) -> None:
        super().__init__(menu)
        self._kept, self.menu = kept, menu
        self.theme: Theme | None = None
        menu.themeChosen.connect(self.set_theme)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme)

    @Slot()
    def apply(self) -> None:
        """Draw everything in the theme and text size of the settings."""
        self.theme = theme_for(self._kept.theme, self._kept.font_scale)
        self.menu.show_theme(self._kept.theme)
        self.changed.emit(self.theme)

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

    @Slot()
    def reset_text(self) -> None:
        """Back to 100 %."""
        self.set_font_scale(1.0)

    @Slot()
    def _on_system_scheme(self) -> None:
        if self._kept.theme == "system":
            self.apply()
