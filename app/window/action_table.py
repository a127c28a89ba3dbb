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


def action_table(
    window: QWidget,
    panels: Panels,
    controllers: Controllers,
    appearance: Appearance,
    layout: PanelLayout,
    stage: Stage,
    rooms: Rooms,
    speech: LanguageSwitch,
) -> dict[str, Callable[[], object]]:
    """Everything that can be done by name."""
    toolbar, runs, dialogs = panels.toolbar, controllers.runs, controllers.dialogs
    return {
        "run": runs.run,
        "escape": lambda: stage.leave() or runs.escape(),
        "run_again": runs.run_again,
        "score_text": controllers.scoring.score_prompt,
        "previous_run": controllers.steps.back,
        "next_run": controllers.steps.forward,
        "toggle_history": controllers.history_panel.toggle,
        "lock_seed": toolbar.seed.lock.toggle,
        "next_room": rooms.next,
        "previous_room": rooms.back,
        "open_menu": rooms.open_menu,
        "open_palette": controllers.palette.open,
        "choose_tour": controllers.tours.choose,
        "next_doubt": panels.inspector.next_doubt,
        "guess_first": controllers.guess.toggle,
        "focus_prompt": controllers.controller.focus_prompt,
        "choose_model": toolbar.model.showPopup,
        "choose_strategy": toolbar.strategy.showPopup,
        "get_model": controllers.getting.open,
        "open_folder": controllers.library.open_folder,
        "open_run": controllers.recorded.ask_what_to_open,
        "save_run": controllers.recorded.ask_where_to_save,
        "save_preset": controllers.library.save_preset,
        "save_picture": controllers.export.ask,
        "copy_picture": controllers.export.copy_picture,
        "copy_text": controllers.copying.copy_text,
        "copy_coloured": controllers.copying.copy_coloured,
        "copy_code": controllers.code.ask,
        "toggle_setup": layout.toggle_setup,
        "toggle_inspector": layout.toggle_inspector,
        "toggle_timeline": layout.toggle_timeline,
        "enlarge_text": appearance.enlarge_text,
        "reduce_text": appearance.reduce_text,
        "reset_text": appearance.reset_text,
        "plain_words": appearance.speak_plainly,
        "usual_words": appearance.speak_as_usual,
        "exact_words": appearance.speak_exactly,
        "open_settings": dialogs.open_settings,
        "open_glossary": controllers.terms.open_glossary,
        "open_shortcuts": dialogs.open_shortcuts,
        "open_used_settings": dialogs.open_used_settings,
        "present": stage.toggle,
        "record_demo": stage.record_demo,
        "speak_as_system": partial(speech.choose, SYSTEM),
        "speak_english": partial(speech.choose, "en"),
        "speak_chinese": partial(speech.choose, "zh_CN"),
        "show_welcome": controllers.welcome.show,
        "quit": window.close,
    }
