"""Maps command names (`app.panels.commands`) to the functions that carry them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMainWindow

from decodescope.app.panels.commands import MAX_VIEW_KEYS, scheme_titles
from decodescope.app.panels.menu_bar import ChoiceGroup, MenuChoice
from decodescope.app.theme.language import SYSTEM
from decodescope.app.views import VIEWS
from decodescope.app.widgets import text_editing
from decodescope.app.window.appearance import AppearanceController, LanguageSwitch
from decodescope.app.window.focus_regions import FocusRegions
from decodescope.app.window.panel_layout import PanelLayout
from decodescope.app.window.presentation_mode import PresentationMode
from decodescope.app.window.window_parts import Controllers, Panels, WindowParts
from decodescope.resources import depth
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.features.palette.controller.entry import PaletteContext

ActionTable = dict[str, Callable[[], object]]


def action_table(
    window: QMainWindow,
    panels: Panels,
    controllers: Controllers,
    appearance: AppearanceController,
    layout: PanelLayout,
    presentation: PresentationMode,
    regions: FocusRegions,
    language_switch: LanguageSwitch,
) -> ActionTable:
    """Return the functions of all commands by name."""
    return {
        **_run_actions(panels, controllers),
        **_file_actions(controllers),
        **_navigation_actions(controllers, layout, regions),
        **_appearance_actions(window, panels, appearance, language_switch),
        **_edit_actions(panels, controllers, layout),
        **_help_actions(controllers),
        "escape": lambda: presentation.leave() or controllers.runs.escape(),
        "present": presentation.toggle,
        "record_demo": controllers.demos.open_dialog,
        "quit": window.close,
    }


def _run_actions(panels: Panels, controllers: Controllers) -> ActionTable:
    """Commands that run something or go back to it."""
    return {
        "run": controllers.runs.run,
        "run_again": controllers.runs.run_again,
        "score_text": controllers.scoring.score_prompt,
        "next_doubt": panels.inspector.next_uncertain,
        "lock_seed": panels.toolbar.seed.lock_button.toggle,
        "focus_prompt": controllers.settings_controller.focus_prompt,
        "choose_model": panels.toolbar.model.showPopup,
        "choose_strategy": panels.toolbar.strategy.showPopup,
        "choose_cache": panels.toolbar.cache.showPopup,
        "guess_first": controllers.guess.toggle,
        "choose_tour": controllers.tours.open_chooser,
        "open_lessons": controllers.lessons.open,
    }


def _file_actions(controllers: Controllers) -> ActionTable:
    """Commands that open, save and export."""
    return {
        "toggle_history": controllers.history_panel.toggle,
        "open_folder": controllers.folders.open,
        "open_gguf": controllers.folders.open_file,
        "add_adapter": controllers.adapters.open,
        "add_gguf_adapter": controllers.adapters.open_file,
        "get_model": controllers.model_download.open,
        "find_engines": controllers.chosen.model.search_local_engines,
        "connect_engine": controllers.model_download.connect_engine,
        "serve_model": controllers.serving.open,
        "open_atlas": controllers.same_noise.open_atlas,
        "open_setting_effects": controllers.same_noise.open_effects,
        "open_twin": controllers.same_noise.open_twin,
        "open_likelihood": controllers.likelihood.open,
        "open_setting_posterior": controllers.likelihood.open_posterior,
        "open_claims": controllers.claims.open,
        "open_studies": controllers.studies.open,
        "explain_difference": controllers.differences.open,
        "open_scale": controllers.labs.open_scale,
        "open_preference_lab": controllers.labs.open_preference,
        "open_speed": controllers.labs.open_speed,
        "open_plugins": controllers.plugins.open,
        "open_run": controllers.recorded_runs.choose_file_to_open,
        "import_chats": controllers.chats.choose_import_file,
        "export_chat": controllers.chats.choose_export_file,
        "open_preset": controllers.presets.open_preset,
        "save_run": controllers.recorded_runs.choose_save_path,
        "save_preset": controllers.presets.save_preset,
        "export_gguf": controllers.model_export.choose_file,
        "save_page": controllers.export.save_page,
        "save_picture": controllers.export.open_dialog,
        "copy_picture": controllers.export.copy_picture,
        "copy_text": controllers.clipboard.copy_text,
        "copy_coloured": controllers.clipboard.copy_coloured,
        "copy_code": controllers.code.show_code,
    }


def _navigation_actions(controllers: Controllers, layout: PanelLayout, regions: FocusRegions) -> ActionTable:
    """Commands for navigation and panels."""
    return {
        "next_room": regions.next,
        "previous_room": regions.back,
        "open_menu": regions.open_menu,
        "open_palette": controllers.palette.open,
        "toggle_setup": layout.toggle_setup,
        "toggle_inspector": layout.toggle_inspector,
        "toggle_timeline": layout.toggle_timeline,
        "open_settings": controllers.dialogs.open_settings,
        "open_used_settings": controllers.dialogs.open_used_settings,
    }


def _edit_actions(panels: Panels, controllers: Controllers, layout: PanelLayout) -> ActionTable:
    """Commands of the Edit menu, except copying a run, and branching from the selected token."""

    def branch() -> None:
        layout.make_room_for_inspector()
        panels.inspector.focus_branch_field()

    def new_text() -> None:
        if panels.setup.prompt.is_chat:
            controllers.chat.new_chat()
        panels.setup.prompt.clear_text()
        controllers.settings_controller.focus_prompt()

    return {
        "new_text": new_text,
        "previous_run": lambda: text_editing.undo() or controllers.run_navigation.back(),
        "next_run": lambda: text_editing.redo() or controllers.run_navigation.forward(),
        "cut": text_editing.cut,
        "copy": text_editing.copy,
        "paste": text_editing.paste,
        "select_all": text_editing.select_all,
        "find_run": controllers.history_panel.show,
        "branch": branch,
    }


def _help_actions(controllers: Controllers) -> ActionTable:
    """Commands of the Help menu."""
    return {
        "open_help": controllers.dialogs.open_help,
        "open_documentation": controllers.dialogs.open_documentation,
        "open_glossary": controllers.glossary.open_glossary,
        "open_shortcuts": controllers.dialogs.open_shortcuts,
        "show_welcome": controllers.welcome.show,
        "copy_diagnostics": controllers.diagnostics.copy,
        "about": controllers.dialogs.open_about,
    }


def _appearance_actions(
    window: QMainWindow, panels: Panels, appearance: AppearanceController, language_switch: LanguageSwitch
) -> ActionTable:
    """Commands for appearance, explanation level and language."""

    def compare() -> None:
        panels.centre.show_view("compare")
        panels.centre.columns[0].current_view.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def compare_temperatures() -> None:
        compare()
        panels.centre.columns[0].current_view.compare_temperatures()

    def toggle_full_screen() -> None:
        window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)

    return {
        "full_screen": toggle_full_screen,
        "split_views": panels.centre.split_button.toggle,
        "compare": compare,
        "compare_temperatures": compare_temperatures,
        "enlarge_text": appearance.enlarge_text,
        "reduce_text": appearance.reduce_text,
        "reset_text": appearance.reset_text,
        "plain_words": appearance.set_plain_words,
        "usual_words": appearance.set_usual_words,
        "exact_words": appearance.set_exact_words,
        "speak_as_system": partial(language_switch.choose, SYSTEM),
        "speak_english": partial(language_switch.choose, "en"),
        "speak_chinese": partial(language_switch.choose, "zh_CN"),
    }


class WindowMenuState:
    """Implements `app.panels.menu_bar.MenuState`; reads the current state from the parts."""

    def __init__(self, window: QMainWindow, parts: WindowParts, make_context: Callable[[], PaletteContext]) -> None:
        self._parts, self._make_context = parts, make_context
        self._context: PaletteContext | None = None
        appearance, centre, switch = parts.settings.appearance, parts.centre, parts.services.language_switch
        self.groups: Mapping[str, ChoiceGroup] = {
            "views": ChoiceGroup(
                [MenuChoice(spec.name, tr(spec.title), f"Ctrl+{number + 1}" if number < MAX_VIEW_KEYS else "")
                 for number, spec in enumerate(VIEWS)],
                lambda: centre.columns[0].current_name,
                centre.show_view,
                lambda name: name in centre.columns[0].available_names,
            ),
            "theme": ChoiceGroup(
                [MenuChoice(name, tr(title)) for name, title in scheme_titles()],
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
        """Return why a command is unavailable; empty if it is available or checkable."""
        from decodescope.app.features.palette.controller.entry import unavailable_reason

        if name in self._checked:
            return ""
        if self._context is None:
            self._context = self._make_context()
        return unavailable_reason(name, self._context)

    def is_checked(self, name: str) -> bool | None:
        """Return whether a command is checked; None if it is not checkable."""
        check = self._checked.get(name)
        return check() if check is not None else None

    @property
    def recent_files(self) -> Sequence[str]:
        """Paths of recently opened or saved recordings, latest first."""
        return self._parts.settings.habits.recent_files
