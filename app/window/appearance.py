"""Theme, text size, open panels: applied to the whole window, and remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from app.panels.appearance_menu import AppearanceMenu
from app.panels.side_splitter import WANTED_WIDTHS
from app.storage.settings import LARGEST_SCALE, SMALLEST_SCALE
from app.theme.panel_rules import rules
from app.theme.theme import Theme, theme_for

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

STEP = 0.1


class Appearance(QObject):
    """Owns the menu behind `Aa` and the theme in use."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self.theme: Theme | None = None
        self.menu = AppearanceMenu(window)
        self.menu.themeChosen.connect(self.set_theme)
        self.menu.actionChosen.connect(window.do)
        window.toolbar.text.setMenu(self.menu)
        toggles = window.status.toggles
        for button, slot in zip(toggles, (self.toggle_setup, self.toggle_timeline, self.toggle_inspector), strict=True):
            button.clicked.connect(slot)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme)

    def apply(self) -> None:
        """Draw everything in the theme and text size of the settings."""
        window, look = self._window, self._window.settings.appearance
        theme = self.theme = theme_for(look.theme, look.font_scale)
        window.setStyleSheet(theme.stylesheet() + rules(theme))
        for part in (window.toolbar, window.setup, window.centre, window.inspector, window.timeline, window.status):
            part.set_theme(theme)
        window.splitter.set_scale(theme.scale)
        self._show_state()

    @Slot(str)
    def set_theme(self, name: str) -> None:
        """Change to the theme `light`, `dark` or `system`."""
        self._window.settings.appearance.theme = name
        self.apply()

    def set_font_scale(self, scale: float) -> None:
        """Change the text size; 1.0 is 100 %. The side panels grow along."""
        self._window.settings.appearance.font_scale = round(min(LARGEST_SCALE, max(SMALLEST_SCALE, scale)), 2)
        self.apply()

    @Slot()
    def enlarge_text(self) -> None:
        """Ten per cent more."""
        self.set_font_scale(self._window.settings.appearance.font_scale + STEP)

    @Slot()
    def reduce_text(self) -> None:
        """Ten per cent less."""
        self.set_font_scale(self._window.settings.appearance.font_scale - STEP)

    @Slot()
    def reset_text(self) -> None:
        """Back to 100 %."""
        self.set_font_scale(1.0)

    @Slot()
    def toggle_setup(self) -> None:
        """Show or hide prompt and parameters."""
        self._toggle("setup")

    @Slot()
    def toggle_inspector(self) -> None:
        """Show or hide the inspector."""
        self._toggle("inspector")

    @Slot()
    def show_inspector(self) -> None:
        """Open the inspector, if it is not."""
        if self._window.inspector.isHidden():
            self._toggle("inspector")

    @Slot()
    def toggle_timeline(self) -> None:
        """Show or hide the timeline."""
        self._toggle("timeline")

    def restore(self) -> None:
        """Open the panels that were open, as wide as they were."""
        window, layout = self._window, self._window.settings.layout
        window.setup.parameters.set_advanced(layout.advanced)
        for name in ("setup", "inspector", "timeline"):
            getattr(window, name).setVisible(getattr(layout, name))
        window.centre.show_view(layout.view)
        window.splitter.set_wanted(layout.sides or WANTED_WIDTHS)
        self._show_state()

    def remember(self) -> None:
        """Write what is open, and how wide, into the settings."""
        window, layout = self._window, self._window.settings.layout
        layout.advanced = window.setup.parameters.is_advanced
        layout.view = window.centre.columns[0].current
        for name, is_open in self._panels().items():
            setattr(layout, name, is_open)
        layout.sides = [round(width) for width in window.splitter.wanted]

    def _toggle(self, name: str) -> None:
        panel = getattr(self._window, name)
        panel.setVisible(panel.isHidden())
        self._show_state()

    def _panels(self) -> dict[str, bool]:
        return {name: not getattr(self._window, name).isHidden() for name in ("setup", "timeline", "inspector")}

    def _show_state(self) -> None:
        panels = self._panels()
        actions = {f"appearance.toggle_{name}": is_open for name, is_open in panels.items()}
        self.menu.show_state(self._window.settings.appearance.theme, actions)
        for button, is_open in zip(self._window.status.toggles, panels.values(), strict=True):
            button.setChecked(is_open)

    @Slot()
    def _on_system_scheme(self) -> None:
        if self._window.settings.appearance.theme == "system":
            self.apply()
