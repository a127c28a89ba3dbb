"""Signal connections between the parts, which do not depend on each other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from decodescope.app.state.token_stats import most_surprising
from decodescope.app.storage.settings import UsageSection
from decodescope.app.window.actions import bind_view_keys
from decodescope.app.window.command_table import WindowMenuState
from decodescope.app.window.drag_and_drop import DropTarget
from decodescope.app.window.window_parts import WindowParts

if TYPE_CHECKING:
    from decodescope.app.features.palette.controller.entry import PaletteContext
    from decodescope.app.views.inspector.step_internals import StepInternalsPanel
    from decodescope.app.window.main_window import MainWindow
MAX_RECENT_FILES = 10


def connect(window: MainWindow, parts: WindowParts) -> None:
    """Connect all signals of the window."""
    _connect_frame(window, parts)
    _connect_setup(parts)
    parts.view_feed.connect_models(parts.chosen.model)
    parts.view_feed.connect_media(parts.services.media)
    _connect_chat(parts)
    for signal, slot in (
        (parts.run_feed.buttonStateChanged, parts.toolbar.run_button.set_mode),
        (parts.toolbar.run_button.clicked, parts.runs.run_or_stop),
        (parts.centre.sequenceRequested, parts.session.show_sequence),
        (parts.status.historyRequested, parts.history_panel.toggle),
        (parts.toolbar.export_button.clicked, parts.export.open_dialog),
        (parts.status.settingsRequested, parts.dialogs.open_used_settings),
        (parts.runs.loadRequested, parts.loading.start_preloading),
        (parts.view_feed.inspectorRequested, parts.layout.show_inspector),
        (parts.view_feed.branchRequested, parts.runs.branch),
        (parts.view_feed.prefixSaveRequested, parts.prefixes.save),
        (parts.view_feed.prefixLoadRequested, parts.prefixes.load),
        (parts.view_feed.samplesRequested, parts.runs.run_samples),
        (parts.view_feed.failed, parts.messages.show_error),
        (parts.view_feed.fillRequested, parts.empty_view_action.fill),
        (parts.empty_view_action.promptRequested, parts.settings_controller.focus_prompt),
        (parts.welcome.storyRequested, partial(parts.centre.show_view, "tokens")),
        (parts.welcome.storyRequested, parts.runs.run),
        (parts.welcome.wordingChosen, parts.appearance.set_depth),
        (parts.welcome.lessonRequested, parts.lessons.open),
        (parts.welcome.tourRequested, parts.tours.open_chooser),
        (parts.welcome.modelRequested, parts.model_download.open),
        (parts.welcome.seen, parts.settings_saver.save_settings),
        (parts.presentation.runRequested, parts.runs.run),
        (parts.presentation.changed, parts.timeline.replay.pause),
        (parts.presentation.changed, parts.sounds.set_presenting),
        (parts.presentation.soundTriggered, parts.sounds.play),
        (parts.dialogs.changed, parts.sounds.follow_settings),
        (parts.dialogs.commandRequested, parts.actions.do),
        (parts.dialogs.noticed, parts.messages.show_notice),
        (parts.dialogs.updatesChanged, parts.updates.check_if_due),
        (parts.updates.checked, parts.settings_saver.save_settings),
    ):
        signal.connect(slot)
    parts.inspector.internalsCreated.connect(partial(_connect_layer_inspection, parts))
    parts.run_feed.runEnded.connect(partial(_select_most_surprising, parts))
    _connect_kernel_builder(parts)
    _connect_history(parts)
    _connect_tours(parts)


def connect_autosave(parts: WindowParts, updated_settings: Callable[[], AbstractContextManager[object]]) -> None:
    """Save settings and chat shortly after each change, so that a crash loses one second at most."""
    keeper = parts.settings_saver
    keeper.set_update(updated_settings, lambda: bool(parts.tours.name))
    for signal in (
        parts.settings_controller.changed,
        parts.layout.changed,
        parts.splitter.splitterMoved,
        parts.setup.parameters.groupsToggled,
        parts.centre.viewShown,
        parts.appearance.changed,
        parts.appearance.wordingChanged,
    ):
        signal.connect(keeper.save_soon)


def _connect_chat(parts: WindowParts) -> None:
    """Connect session and chat."""
    session, chat = parts.session, parts.chat
    chat.is_run_own = lambda: session.busy
    chat.show_adapters(parts.adapters.entries)
    parts.run_feed.answers_client = lambda: parts.serving.has_started_run
    for signal, slot in (
        (session.runStarted, chat.on_started),
        (session.promptTrimmed, chat.on_trimmed),
        (session.finished, chat.on_finished),
        (session.modelReady, chat.on_model),
        (session.runShown, chat.on_shown),
        (parts.run_feed.buttonStateChanged, chat.set_button_mode),
        (parts.dialogs.changed, chat.follow_settings),
        (chat.settled, parts.services.chat_saver.save),
        (parts.adapters.listed, chat.show_adapters),
        (chat.adapterSwitched, parts.adapters.switch),
        (chat.answerRequested, parts.runs.answer),
        (chat.sendRequested, parts.runs.run_or_stop),
        (chat.settingsRequested, parts.settings_controller.apply_saved_settings),
        (parts.chats.listToggled, parts.settings_saver.save_soon),
        (chat.promptRequested, parts.settings_controller.focus_prompt),
    ):
        signal.connect(slot)


def _connect_kernel_builder(parts: WindowParts) -> None:
    """Show the decode backend in status line and settings."""
    builder = parts.services.kernel_builder
    builder.changed.connect(parts.status.show_backend)
    builder.changed.connect(parts.dialogs.show_decode_backend)
    parts.dialogs.changed.connect(builder.follow_settings)
    builder.emit_backend()


def _connect_layer_inspection(parts: WindowParts, part: StepInternalsPanel) -> None:
    """Create the controller of the inspector's layer section."""
    from decodescope.app.control.step_inspection import LayerInspectionController

    LayerInspectionController(parts.session, parts.inspector, part).influence.connect(parts.view_feed.on_influence)


def _connect_setup(parts: WindowParts) -> None:
    """Connect the settings and what depends on them."""
    setup, chosen = parts.settings_controller, parts.chosen
    for signal, slot in (
        (chosen.model.ready, setup.show_model),
        (chosen.drafts.removed, parts.messages.show_notice),
        (parts.prompt_length.shortenRequested, setup.focus_prompt),
        (parts.prompt_length.modelRequested, parts.toolbar.model.showPopup),
        (parts.prompt_length.retryRequested, parts.runs.run),
        (setup.notice, parts.messages.show_notice),
        (setup.panelRequested, parts.layout.show_setup),
        (parts.inspector.stagesWanted, setup.order_stages),
        (parts.inspector.targetMissing, parts.messages.show_notice),
        (setup.changed, parts.memory_fit.schedule),
        (setup.adaptersRequested, parts.adapters.apply),
        (parts.adapters.changed, parts.changes.schedule_check),
        (parts.adapters.changed, parts.settings_saver.save_settings),
        (parts.weights.changed, parts.memory_fit.schedule),
        (parts.weights.changed, parts.changes.schedule_check),
        (parts.weights.changed, parts.settings_saver.save_settings),
        (parts.messages.offerAccepted, parts.weights.accept_disk_offer),
        (parts.memory_fit.throughputEstimated, parts.weights.show_throughput),
        (parts.scoring.startRequested, parts.runs.start),
        (parts.claims.runRequested, parts.runs.start),
        (parts.media.rejected, parts.messages.show_setup_error),
        (parts.scoring.rejected, parts.messages.show_setup_error),
        (parts.run_tree.noticed, parts.messages.show_notice),
        (parts.model_download.noticed, parts.messages.show_notice),
        (parts.model_download.folderRequested, parts.folders.open),
        (parts.weights.measureRequested, parts.scoring.compare_with_float32),
        (setup.changed, parts.changes.schedule_check),
        (setup.changed, parts.status.clear_failure),
        (parts.changes.grammarSet, parts.view_feed.on_grammar),
        (parts.dialogs.changed, parts.changes.schedule_check),
        (parts.memory_fit.runSizeEstimated, chosen.model.set_run_size),
        (parts.prefixes.textRequested, setup.write_prompt),
        (parts.messages.allowed, parts.loading.allow),
        (parts.messages.allowed, parts.settings_saver.save_settings),
        (parts.dialogs.appearanceChanged, parts.appearance.apply),
        (parts.dialogs.loadingChanged, parts.loading.load),
        (parts.dialogs.changed, parts.settings_saver.save_settings),
        (parts.settings_saver.writeFailed, parts.messages.show_notice),
    ):
        signal.connect(slot)


def _select_most_surprising(parts: WindowParts) -> None:
    """Select the token worth explaining after a run, unless the user has selected one or is looking at another step."""
    run = parts.session.run
    if run is None or run.finished is None or not run.is_following or run.selected is not None:
        return
    if not (parts.presentation.is_on or parts.guess.is_on or run.is_withheld):
        parts.session.select_token(most_surprising(run.tokens))


def _connect_history(parts: WindowParts) -> None:
    """Connect the history panel."""
    history, panel = parts.history, parts.history_panel
    for signal, slot in (
        (history.failed, parts.messages.show_error),
        (history.noticed, parts.messages.show_notice),
        (panel.shown, parts.layout.show_setup),
        (panel.compareRequested, parts.view_feed.compare_with),
        (panel.restoreRequested, parts.settings_controller.apply_request),
        (panel.runRequested, parts.runs.run),
        (panel.changed, parts.settings_saver.save_settings),
        (parts.settings_controller.panelRequested, parts.setup.show_inputs),
        (parts.dialogs.historyChanged, history.trim),
        (parts.dialogs.historyChanged, panel.refresh),
        (parts.dialogs.forgetAllRequested, parts.history_edits.confirm_delete_all),
    ):
        signal.connect(slot)
    parts.run_navigation.emit_state()


def _connect_tours(parts: WindowParts) -> None:
    """Connect the tours and the guessing game."""
    parts.tours.setupRequested.connect(parts.layout.show_setup)
    parts.tours.inspectorRequested.connect(parts.layout.make_room_for_inspector)
    parts.toolbar.tours_button.clicked.connect(parts.tours.open_chooser)
    parts.timeline.guess_button.clicked.connect(parts.guess.toggle)
    parts.guess.started.connect(parts.tours.leave)
    parts.guess.started.connect(parts.setup.show_inputs)
    parts.guess.started.connect(parts.timeline.hide_future)
    parts.guess.ended.connect(parts.timeline.show_future)
    parts.guess.roomAnswered.connect(parts.lessons.record_room)
    parts.tours.playerCreated.connect(parts.presentation.step_controls.connect_tours)
    parts.presentation.step_controls.connect_guess(parts.guess)


def _connect_language(parts: WindowParts) -> None:
    """Connect the language settings."""
    switch = parts.services.language_switch
    for signal, slot in (
        (parts.dialogs.languageChosen, switch.choose),
        (switch.pendingChanged, parts.run_feed.on_language_pending),
    ):
        signal.connect(slot)


def _connect_frame(window: MainWindow, parts: WindowParts) -> None:
    """Connect theme, menu and shortcuts, and what starts after the first painting."""
    appearance = parts.appearance
    parts.palette.set_context(lambda: _palette_context(window, parts))
    appearance.changed.connect(window.set_theme)
    appearance.wordingChanged.connect(parts.view_feed.on_wording_changed)
    appearance.wordingChanged.connect(parts.glossary.refresh)
    appearance.wordingChanged.connect(parts.labs.wording_changed)
    appearance.wordingChanged.connect(parts.same_noise.wording_changed)
    appearance.wordingChanged.connect(parts.claims.wording_changed)
    parts.glossary.claimsRequested.connect(parts.claims.open_subject)
    _connect_language(parts)
    window.textSizeRequested.connect(appearance.step_text)
    parts.services.live.noticed.connect(parts.messages.show_notice)
    body = window.body
    _connect_menu_bar(window, parts)
    bind_view_keys(body, parts.centre)
    drops = DropTarget(window, body, parts.dropping.media_unsupported_reason)
    drops.dropped.connect(parts.dropping.handle_drop)
    drops.rejected.connect(parts.dropping.show_rejection)
    drops.pictureDropped.connect(parts.media_bar.add_picture)
    window.firstPainted.connect(parts.loading.start_preloading)
    window.firstPainted.connect(parts.centre.create_remaining_views)
    window.firstPainted.connect(parts.setup.create_all_rows)
    window.firstPainted.connect(parts.inspector.area.create_token_page)


def _connect_menu_bar(window: MainWindow, parts: WindowParts) -> None:
    """Connect commands, shortcuts and recent files of the menu bar."""
    bar = parts.menu_bar
    bar.build(WindowMenuState(window, parts, lambda: _palette_context(window, parts)))
    bar.bind_keys(window.body)
    bar.chosen.connect(parts.actions.do)
    bar.recentChosen.connect(parts.recorded_runs.open)
    bar.recentCleared.connect(parts.settings.habits.recent_files.clear)
    parts.recorded_runs.fileUsed.connect(partial(_remember_file, parts.settings.habits))


def _remember_file(usage: UsageSection, path: str) -> None:
    """Put an opened or saved file first in the list of recent files."""
    others = [used for used in usage.recent_files if used != path]
    usage.recent_files[:] = [path, *others][:MAX_RECENT_FILES]


def _palette_context(window: MainWindow, parts: WindowParts) -> PaletteContext:
    """Return the context of the command palette."""
    from decodescope.app.features.palette.controller.entry import PaletteContext

    return PaletteContext(
        window=window,
        toolbar=parts.toolbar,
        panel=parts.setup,
        centre=parts.centre,
        chosen=parts.chosen,
        setup=parts.settings_controller,
        presets=parts.presets,
        history=parts.history,
        run_navigation=parts.run_navigation,
        session=parts.session,
        appearance_control=parts.appearance,
        appearance=parts.settings.appearance,
        actions=parts.actions.table,
        is_presenting=lambda: parts.presentation.is_on,
        start_tour=parts.tours.start,
        open_term=parts.glossary.open_at,
        branch_reason=parts.inspector.no_branch_reason,
    )
