"""Maps the name of every command (`app.panels.commands`) to the function that carries it out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMainWindow

from app.theme.language import SYSTEM
from app.widgets import text_editing
from app.window.appearance import Appearance
from app.window.focus_regions import FocusRegions
from app.window.language_switch import LanguageSwitch
from app.window.panel_layout import PanelLayout
from app.window.presentation_mode import PresentationMode
from app.window.window_parts import Controllers, Panels

Table = dict[str, Callable[[], object]]


def action_table(
    window: QMainWindow,
    panels: Panels,
    controllers: Controllers,
    appearance: Appearance,
    layout: PanelLayout,
    stage: PresentationMode,
    rooms: FocusRegions,
    speech: LanguageSwitch,
) -> Table:
    """Everything that can be done by name."""
    return {
        **_running(panels, controllers),
        **_keeping(controllers),
        **_around(controllers, layout, rooms),
        **_looking(window, panels, appearance, speech),
        **_editing(panels, controllers, layout),
        **_helping(controllers),
        "escape": lambda: stage.leave() or controllers.runs.escape(),
        "present": stage.toggle,
        "record_demo": controllers.demos.ask,
        "quit": window.close,
    }


def _running(panels: Panels, controllers: Controllers) -> Table:
    """What is run, and gone back to."""
    return {
        "run": controllers.runs.run,
        "run_again": controllers.runs.run_again,
        "score_text": controllers.scoring.score_prompt,
        "next_doubt": panels.inspector.next_doubt,
        "lock_seed": panels.toolbar.seed.lock.toggle,
        "focus_prompt": controllers.controller.focus_prompt,
        "choose_model": panels.toolbar.model.showPopup,
        "choose_strategy": panels.toolbar.strategy.showPopup,
        "choose_cache": panels.toolbar.cache.showPopup,
        "guess_first": controllers.guess.toggle,
        "choose_tour": controllers.tours.choose,
    }


def _keeping(controllers: Controllers) -> Table:
    """What is opened, kept and taken along."""
    return {
        "toggle_history": controllers.history_panel.toggle,
        "open_folder": controllers.folders.open,
        "get_model": controllers.getting.open,
        "connect_engine": controllers.getting.connect_engine,
        "open_scale": controllers.labs.open_scale,
        "open_preference_lab": controllers.labs.open_preference,
        "open_speed": controllers.labs.open_speed,
        "open_run": controllers.recorded.ask_what_to_open,
        "open_preset": controllers.library.open_preset,
        "save_run": controllers.recorded.ask_where_to_save,
        "save_preset": controllers.library.save_preset,
        "save_picture": controllers.export.ask,
        "copy_picture": controllers.export.copy_picture,
        "copy_text": controllers.copying.copy_text,
        "copy_coloured": controllers.copying.copy_coloured,
        "copy_code": controllers.code.ask,
    }


def _around(controllers: Controllers, layout: PanelLayout, rooms: FocusRegions) -> Table:
    """Where to go, and which panels are open."""
    return {
        "next_room": rooms.next,
        "previous_room": rooms.back,
        "open_menu": rooms.open_menu,
        "open_palette": controllers.palette.open,
        "toggle_setup": layout.toggle_setup,
        "toggle_inspector": layout.toggle_inspector,
        "toggle_timeline": layout.toggle_timeline,
        "open_settings": controllers.dialogs.open_settings,
        "open_used_settings": controllers.dialogs.open_used_settings,
    }


def _editing(panels: Panels, controllers: Controllers, layout: PanelLayout) -> Table:
    """What the Edit menu has besides copying a run, and what continues from the picked token."""

    def branch() -> None:
        layout.make_room_for_inspector()
        panels.inspector.type_words()

    def new_text() -> None:
        if panels.setup.prompt.is_chat:
            controllers.chat.new_chat()
        panels.setup.prompt.clear_text()
        controllers.controller.focus_prompt()

    return {
        "new_text": new_text,
        "previous_run": lambda: text_editing.undo() or controllers.steps.back(),
        "next_run": lambda: text_editing.redo() or controllers.steps.forward(),
        "cut": text_editing.cut,
        "copy": text_editing.copy,
        "paste": text_editing.paste,
        "select_all": text_editing.select_all,
        "find_run": controllers.history_panel.show,
        "branch": branch,
    }


def _helping(controllers: Controllers) -> Table:
    """The Help menu."""
    return {
        "open_help": controllers.dialogs.open_help,
        "open_glossary": controllers.terms.open_glossary,
        "open_shortcuts": controllers.dialogs.open_shortcuts,
        "show_welcome": controllers.welcome.show,
        "copy_diagnostics": controllers.diagnostics.copy,
        "about": controllers.dialogs.open_about,
    }


def _looking(window: QMainWindow, panels: Panels, appearance: Appearance, speech: LanguageSwitch) -> Table:
    """How it looks, and in which words."""

    def compare() -> None:
        panels.centre.show_view("compare")
        panels.centre.columns[0].shown.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def toggle_full_screen() -> None:
        window.setWindowState(window.windowState() ^ Qt.WindowState.WindowFullScreen)

    return {
        "full_screen": toggle_full_screen,
        "split_views": panels.centre.split.toggle,
        "compare": compare,
        "enlarge_text": appearance.enlarge_text,
        "reduce_text": appearance.reduce_text,
        "reset_text": appearance.reset_text,
        "plain_words": appearance.speak_plainly,
        "usual_words": appearance.speak_as_usual,
        "exact_words": appearance.speak_exactly,
        "speak_as_system": partial(speech.choose, SYSTEM),
        "speak_english": partial(speech.choose, "en"),
        "speak_chinese": partial(speech.choose, "zh_CN"),
    }
