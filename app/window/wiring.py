"""Which part hears of what another says. A part knows nothing of this: it only says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from app.storage.settings import Habits
from app.window.actions import bind_view_keys
from app.window.drag_and_drop import Drops
from app.window.menu_state import WindowMenuState
from app.window.window_parts import WindowParts

if TYPE_CHECKING:
    from app.control.palette.entry import PaletteContext
    from app.views.inspector.inside_section import InsidePart
    from app.window.main_window import MainWindow
MAX_RECENT_FILES = 10


def connect(window: MainWindow, parts: WindowParts) -> None:
    """Let each part hear of what concerns it."""
    _connect_frame(window, parts)
    _connect_setup(parts)
    parts.view_feed.follow_models(parts.chosen.model)
    parts.view_feed.follow_media(parts.lasting.media)
    _connect_chat(parts)
    for signal, slot in (
        (parts.run_feed.faceChanged, parts.toolbar.run.set_face),
        (parts.toolbar.run.clicked, parts.runs.run_or_stop),
        (parts.centre.sequenceWanted, parts.session.show_sequence),
        (parts.status.historyWanted, parts.history_panel.toggle),
        (parts.toolbar.export.clicked, parts.export.ask),
        (parts.status.settingsWanted, parts.dialogs.open_used_settings),
        (parts.runs.loadWanted, parts.loading.warm_up),
        (parts.view_feed.inspectorRequested, parts.layout.show_inspector),
        (parts.view_feed.branchWanted, parts.runs.branch),
        (parts.view_feed.prefixSaveWanted, parts.prefixes.save),
        (parts.view_feed.prefixLoadWanted, parts.prefixes.load),
        (parts.view_feed.chorusWanted, parts.runs.chorus),
        (parts.view_feed.failed, parts.messages.show_error),
        (parts.view_feed.fillWanted, parts.filling.fill),
        (parts.filling.promptWanted, parts.controller.focus_prompt),
        (parts.welcome.storyWanted, partial(parts.centre.show_view, "tokens")),
        (parts.welcome.storyWanted, parts.runs.run),
        (parts.welcome.tourWanted, parts.tours.choose),
        (parts.welcome.modelWanted, parts.getting.open),
        (parts.welcome.seen, parts.keeper.keep_settings),
        (parts.stage.runWanted, parts.runs.run),
        (parts.stage.changed, parts.timeline.replay.pause),
        (parts.stage.changed, parts.cues.set_staged),
        (parts.stage.happened, parts.cues.play),
        (parts.dialogs.changed, parts.cues.follow_settings),
        (parts.dialogs.commandWanted, parts.actions.do),
    ):
        signal.connect(slot)
    parts.inspector.insideMade.connect(partial(_look_inside, parts))
    _connect_quickening(parts)
    _connect_history(parts)
    _connect_tours(parts)


def keep_by_itself(parts: WindowParts, remembered: Callable[[], AbstractContextManager[object]]) -> None:
    """Write what is set and said shortly after each change, so that a kill or a power cut loses a second at most."""
    keeper = parts.keeper
    keeper.remember_with(remembered, lambda: bool(parts.tours.name))
    for signal in (
        parts.controller.changed,
        parts.layout.changed,
        parts.splitter.splitterMoved,
        parts.setup.parameters.advancedToggled,
        parts.centre.viewShown,
        parts.appearance.changed,
        parts.appearance.wordsChanged,
    ):
        signal.connect(keeper.keep_soon)


def _connect_chat(parts: WindowParts) -> None:
    """What joins the conversation, and what becomes of it."""
    session, chat = parts.session, parts.chat
    for signal, slot in (
        (session.runStarted, chat.on_started),
        (session.promptTrimmed, chat.on_trimmed),
        (session.finished, chat.on_finished),
        (session.modelReady, chat.on_model),
        (chat.settled, parts.lasting.chat_keeper.keep),
        (chat.answerWanted, parts.runs.answer),
        (chat.promptWanted, parts.controller.focus_prompt),
    ):
        signal.connect(slot)


def _connect_quickening(parts: WindowParts) -> None:
    """Who takes the steps: told below, switched in the settings."""
    quickening = parts.lasting.quickening
    quickening.changed.connect(parts.status.show_steps)
    quickening.changed.connect(parts.dialogs.tell_steps)
    parts.dialogs.changed.connect(quickening.follow_settings)
    quickening.tell()


def _look_inside(parts: WindowParts, part: InsidePart) -> None:
    """What the inspector's last part needs, made with it."""
    from app.control.layer_inspection import InsideController

    InsideController(parts.session, parts.inspector, part).influence.connect(parts.view_feed.on_influence)


def _connect_setup(parts: WindowParts) -> None:
    """What is set, and what follows from it."""
    setup, chosen = parts.controller, parts.chosen
    for signal, slot in (
        (chosen.model.ready, setup.show_model),
        (setup.notice, parts.messages.show_notice),
        (setup.panelWanted, parts.layout.show_setup),
        (parts.inspector.stagesWanted, setup.order_stages),
        (parts.inspector.nowhereToGo, parts.messages.show_notice),
        (setup.changed, parts.fit.later),
        (parts.weights.changed, parts.fit.later),
        (parts.weights.changed, parts.changes.look),
        (parts.weights.changed, parts.keeper.keep_settings),
        (parts.messages.offerTaken, parts.weights.give_way),
        (parts.fit.paceTold, parts.weights.tell_pace),
        (parts.scoring.startWanted, parts.runs.start),
        (parts.media.refused, parts.messages.show_setup_error),
        (parts.scoring.refused, parts.messages.show_setup_error),
        (parts.family.noticed, parts.messages.show_notice),
        (parts.getting.noticed, parts.messages.show_notice),
        (parts.getting.folderWanted, parts.folders.open),
        (parts.weights.measureWanted, parts.scoring.measure_weights),
        (setup.changed, parts.changes.look),
        (setup.changed, parts.status.forget_failure),
        (parts.changes.grammarSet, parts.view_feed.on_grammar),
        (parts.dialogs.changed, parts.changes.look),
        (parts.fit.reckoned, chosen.model.reckon),
        (parts.prefixes.textWanted, setup.write_prompt),
        (parts.messages.allowed, parts.loading.allow),
        (parts.messages.allowed, parts.keeper.keep_settings),
        (parts.dialogs.appearanceChanged, parts.appearance.apply),
        (parts.dialogs.loadingChanged, parts.loading.load),
        (parts.dialogs.changed, parts.keeper.keep_settings),
        (parts.keeper.refused, parts.messages.show_notice),
    ):
        signal.connect(slot)


def _connect_history(parts: WindowParts) -> None:
    """The kept runs: what they need of the panels, and what is said of them."""
    history, panel = parts.history, parts.history_panel
    for signal, slot in (
        (history.refused, parts.messages.show_error),
        (history.noticed, parts.messages.show_notice),
        (panel.shown, parts.layout.show_setup),
        (panel.compareWanted, parts.view_feed.compare_with),
        (panel.requestWanted, parts.controller.apply_request),
        (panel.runWanted, parts.runs.run),
        (panel.changed, parts.keeper.keep_settings),
        (parts.controller.panelWanted, parts.setup.uncover),
        (parts.dialogs.historyChanged, history.trim),
        (parts.dialogs.historyChanged, panel.refresh),
        (parts.dialogs.forgetAllWanted, parts.kept_changes.ask_to_forget_all),
    ):
        signal.connect(slot)
    parts.steps.tell()


def _connect_tours(parts: WindowParts) -> None:
    """What a tour points at has to be open; how it looks."""
    parts.tours.setupWanted.connect(parts.layout.show_setup)
    parts.tours.inspectorWanted.connect(parts.layout.make_room_for_inspector)
    parts.toolbar.tours.clicked.connect(parts.tours.choose)
    parts.timeline.guess_button.clicked.connect(parts.guess.toggle)
    parts.guess.started.connect(parts.tours.leave)
    parts.guess.started.connect(parts.setup.uncover)
    parts.guess.started.connect(parts.timeline.veil)
    parts.guess.ended.connect(parts.timeline.unveil)
    for part in (parts.tours, parts.guess):
        parts.appearance.changed.connect(part.set_theme)
    parts.tours.made.connect(parts.stage.steering.follow_tours)


def _connect_language(parts: WindowParts) -> None:
    """Who asks for another, and what tells which it is."""
    switch = parts.lasting.switch
    for signal, slot in (
        (parts.dialogs.languageChosen, switch.choose),
        (switch.waits, parts.run_feed.on_language_waits),
    ):
        signal.connect(slot)


def _connect_frame(window: MainWindow, parts: WindowParts) -> None:
    """Theme, menu and keys; and what waits until the window has been drawn."""
    appearance = parts.appearance
    parts.palette.act_on(lambda: _reach(window, parts))
    themed = (parts.toolbar, parts.setup, parts.centre, parts.inspector, parts.timeline, parts.status, parts.splitter)
    for part in (
        window,
        *themed,
        parts.export,
        parts.history_panel,
        parts.palette,
        parts.welcome,
        parts.getting,
        parts.labs,
        parts.media_bar,
    ):
        appearance.changed.connect(part.set_theme)
    appearance.wordsChanged.connect(parts.view_feed.on_words_changed)
    appearance.wordsChanged.connect(parts.terms.refresh)
    appearance.wordsChanged.connect(parts.labs.words_changed)
    _connect_language(parts)
    window.textSizeWanted.connect(appearance.step_text)
    body = window.body
    _connect_menu_bar(window, parts)
    bind_view_keys(body, parts.centre)
    drops = Drops(window, body, parts.dropping.media_reason)
    drops.taken.connect(parts.dropping.take)
    drops.refused.connect(parts.dropping.refuse)
    drops.pictureTaken.connect(parts.media_bar.add_picture)
    appearance.changed.connect(drops.set_theme)
    window.painted.connect(parts.loading.warm_up)
    window.painted.connect(parts.centre.make_the_rest)
    window.painted.connect(parts.setup.make_all)
    window.painted.connect(parts.inspector.area.make)


def _connect_menu_bar(window: MainWindow, parts: WindowParts) -> None:
    """Its commands, its keys, and the files that it offers again."""
    bar = parts.menu_bar
    bar.build(WindowMenuState(window, parts, lambda: _reach(window, parts)))
    bar.bind_keys(window.body)
    bar.chosen.connect(parts.actions.do)
    bar.recentChosen.connect(parts.recorded.open)
    bar.recentCleared.connect(parts.settings.habits.recent_files.clear)
    parts.recorded.fileUsed.connect(partial(_remember_file, parts.settings.habits))


def _remember_file(habits: Habits, path: str) -> None:
    """Put a file that was opened or saved first in the list of recent files."""
    others = [used for used in habits.recent_files if used != path]
    habits.recent_files[:] = [path, *others][:MAX_RECENT_FILES]


def _reach(window: MainWindow, parts: WindowParts) -> PaletteContext:
    """What the command palette acts on."""
    from app.control.palette.entry import PaletteContext

    return PaletteContext(
        window=window,
        toolbar=parts.toolbar,
        panel=parts.setup,
        centre=parts.centre,
        chosen=parts.chosen,
        setup=parts.controller,
        library=parts.library,
        history=parts.history,
        steps=parts.steps,
        session=parts.session,
        looks=parts.appearance,
        appearance=parts.settings.appearance,
        actions=parts.actions.table,
        is_presenting=lambda: parts.stage.is_on,
        start_tour=parts.tours.start,
        open_term=parts.terms.open_at,
        branch_reason=parts.inspector.branch_reason,
    )
