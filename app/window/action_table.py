"""Everything that can be done by name, and by which part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QWidget

from app.theme.language import SYSTEM
from app.window.appearance import Appearance
from app.window.panel_layout import PanelLayout
from app.window.parts import Controllers, Panels
from app.window.rooms import Rooms
from app.window.stage import Stage
from app.window.switch import LanguageSwitch

Table = dict[str, Callable[[], object]]


def action_table(
    window: QWidget,
    panels: Panels,
    controllers: Controllers,
    appearance: Appearance,
    layout: PanelLayout,
    stage: Stage,
    rooms: Rooms,
    speech: LanguageSwitch,
) -> Table:
    """Everything that can be done by name."""
    return {
        **_running(panels, controllers),
        **_keeping(controllers),
        **_around(controllers, layout, rooms),
        **_looking(appearance, speech),
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
        "previous_run": controllers.steps.back,
        "next_run": controllers.steps.forward,
        "next_doubt": panels.inspector.next_doubt,
        "lock_seed": panels.toolbar.seed.lock.toggle,
        "focus_prompt": controllers.controller.focus_prompt,
        "choose_model": panels.toolbar.model.showPopup,
        "choose_strategy": panels.toolbar.strategy.showPopup,
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
        "save_run": controllers.recorded.ask_where_to_save,
        "save_preset": controllers.library.save_preset,
        "save_picture": controllers.export.ask,
        "copy_picture": controllers.export.copy_picture,
        "copy_text": controllers.copying.copy_text,
        "copy_coloured": controllers.copying.copy_coloured,
        "copy_code": controllers.code.ask,
    }


def _around(controllers: Controllers, layout: PanelLayout, rooms: Rooms) -> Table:
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
        "open_glossary": controllers.terms.open_glossary,
        "open_shortcuts": controllers.dialogs.open_shortcuts,
        "open_used_settings": controllers.dialogs.open_used_settings,
        "show_welcome": controllers.welcome.show,
    }


def _looking(appearance: Appearance, speech: LanguageSwitch) -> Table:
    """How it looks, and in which words."""
    return {
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
