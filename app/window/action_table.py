"""Maps the name of every command (`app.panels.commands`) to the function that carries it out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMainWindow

from app.theme.language import SYSTEM
from app.widgets import text_editing
from app.window.appearance import AppearanceController
from app.window.focus_regions import FocusRegions
from app.window.language_switch import LanguageSwitch
from app.window.panel_layout import PanelLayout
from app.window.presentation_mode import PresentationMode
from app.window.window_parts import Controllers, Panels

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
    """Everything that can be done by name."""
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
    """What is run, and gone back to."""
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
    }


def _file_actions(controllers: Controllers) -> ActionTable:
    """What is opened, kept and taken along."""
    return {
        "toggle_history": controllers.history_panel.toggle,
        "open_folder": controllers.folders.open,
        "get_model": controllers.model_download.open,
        "connect_engine": controllers.model_download.connect_engine,
        "open_scale": controllers.labs.open_scale,
        "open_preference_lab": controllers.labs.open_preference,
        "open_speed": controllers.labs.open_speed,
        "open_run": controllers.recorded_runs.choose_file_to_open,
        "open_preset": controllers.presets.open_preset,
        "save_run": controllers.recorded_runs.choose_save_path,
        "save_preset": controllers.presets.save_preset,
        "save_picture": controllers.export.open_dialog,
        "copy_picture": controllers.export.copy_picture,
        "copy_text": controllers.clipboard.copy_text,
        "copy_coloured": controllers.clipboard.copy_coloured,
        "copy_code": controllers.code.show_code,
    }


def _navigation_actions(controllers: Controllers, layout: PanelLayout, regions: FocusRegions) -> ActionTable:
    """Where to go, and which panels are open."""
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
    """What the Edit menu has besides copying a run, and what continues from the picked token."""

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
    """The Help menu."""
    return {
        "open_help": controllers.dialogs.open_help,
        "open_glossary": controllers.glossary.open_glossary,
        "open_shortcuts": controllers.dialogs.open_shortcuts,
        "show_welcome": controllers.welcome.show,
        "copy_diagnostics": controllers.diagnostics.copy,
        "about": controllers.dialogs.open_about,
    }


def _appearance_actions(
    window: QMainWindow, panels: Panels, appearance: AppearanceController, language_switch: LanguageSwitch
) -> ActionTable:
    """How it looks, and in which words."""

    def compare() -> None:
        panels.centre.show_view("compare")
        panels.centre.columns[0].current_view.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def toggle_full_screen() -> None:
        window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)

    return {
        "full_screen": toggle_full_screen,
        "split_views": panels.centre.split_button.toggle,
        "compare": compare,
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
