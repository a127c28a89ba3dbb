"""What the menu bar shows of the window: ticks, greyed commands, the views, the themes, the recent files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMainWindow

from app.panels.choice_titles import scheme_titles
from app.panels.menu_bar import Choice, ChoiceGroup
from app.panels.shortcuts import MAX_VIEW_KEYS
from app.theme.language import SYSTEM
from app.views import VIEWS
from app.window.window_parts import WindowParts
from resources import depth
from resources.language import tr

if TYPE_CHECKING:
    from app.control.palette.entry import PaletteContext


class WindowMenuState:
    """Implements `app.panels.menu_bar.MenuState`; reads everything from the parts when asked."""

    def __init__(self, window: QMainWindow, parts: WindowParts, make_context: Callable[[], PaletteContext]) -> None:
        self._parts, self._make_context = parts, make_context
        self._context: PaletteContext | None = None
        appearance, centre, switch = parts.settings.appearance, parts.centre, parts.services.language_switch
        self.groups: Mapping[str, ChoiceGroup] = {
            "views": ChoiceGroup(
                [Choice(spec.name, tr(spec.title), f"Ctrl+{number + 1}" if number < MAX_VIEW_KEYS else "")
                 for number, spec in enumerate(VIEWS)],
                lambda: centre.columns[0].current_name,
                centre.show_view,
                lambda name: name in centre.columns[0].available_names,
            ),
            "theme": ChoiceGroup(
                [Choice(name, tr(title)) for name, title in scheme_titles()],
                lambda: appearance.theme,
                parts.appearance.set_theme,
                lambda _name: True,
            ),
        }  # fmt: skip
        self._checked: Mapping[str, Callable[[], bool]] = {
            "toggle_setup": lambda: parts.layout.is_open["toggle_setup"],
            "toggle_inspector": lambda: parts.layout.is_open["toggle_inspector"],
            "toggle_timeline": lambda: parts.layout.is_open["toggle_timeline"],
            "toggle_history": lambda: parts.history_panel.search_text is not None,
            "split_views": lambda: centre.split_button.isChecked(),
            "full_screen": window.isFullScreen,
            "present": lambda: parts.presentation.is_on,
            "lock_seed": lambda: parts.toolbar.seed.is_locked,
            "guess_first": lambda: parts.guess.is_on,
            "plain_words": lambda: appearance.depth == depth.PLAIN,
            "usual_words": lambda: appearance.depth == depth.USUAL,
            "exact_words": lambda: appearance.depth == depth.EXACT,
            "speak_as_system": lambda: switch.choice == SYSTEM,
            "speak_english": lambda: switch.choice == "en",
            "speak_chinese": lambda: switch.choice == "zh_CN",
        }

    def unavailable_reason(self, name: str) -> str:
        """Why a command cannot be used now; empty where it can, and where its line is only ticked."""
        from app.control.palette.availability import unavailable_reason

        if name in self._checked:
            return ""
        if self._context is None:
            self._context = self._make_context()
        return unavailable_reason(name, self._context)

    def is_checked(self, name: str) -> bool | None:
        """Whether a command's line is ticked; None for one that has no tick."""
        check = self._checked.get(name)
        return check() if check is not None else None

    @property
    def recent_files(self) -> Sequence[str]:
        """Paths of the recordings that were opened or saved last, the latest first."""
        return self._parts.settings.habits.recent_files
