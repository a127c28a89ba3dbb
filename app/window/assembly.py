"""Builds the parts of the main window with their dependencies; `wiring` connects their signals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from decodescope.app.control.adapters import AdapterController
from decodescope.app.control.audible_feedback import ScreenReaderText, SoundEffectController
from decodescope.app.control.borrowed_settings import BorrowedSettings, SettingsSources
from decodescope.app.control.chat import ChatController, ChatLibrary
from decodescope.app.control.chat_fit import ChatFitController
from decodescope.app.control.dialogs import CodeController, Diagnostics, Dialogs
from decodescope.app.control.export import CopyController, ExportController
from decodescope.app.control.help import GlossaryController, WelcomeController
from decodescope.app.control.memory_fit import MemoryFitController
from decodescope.app.control.messages import Messages
from decodescope.app.control.model_choice import DraftChoice, ModelChoice, ModelFolders
from decodescope.app.control.model_export import ModelExportController
from decodescope.app.control.model_list import ModelList
from decodescope.app.control.model_loading import ModelLoadController, WeightsController
from decodescope.app.control.model_task import ModelTaskController
from decodescope.app.control.prefixes import PrefixController, ReuseMarks
from decodescope.app.control.prompt_length import PromptLengthController
from decodescope.app.control.recorded_runs import RecordedRuns
from decodescope.app.control.registry_choice import CacheChoice, StrategyChoice
from decodescope.app.control.requests import ChosenSettings, RequestBuilder, RunInput
from decodescope.app.control.run_control import EmptyViewAction, RunController
from decodescope.app.control.scoring import ScoreController
from decodescope.app.control.settings_controller import PresetLibrary, SettingsController
from decodescope.app.control.settings_watcher import SettingsChangeWatcher
from decodescope.app.control.word_spellings import WordSpellingsController
from decodescope.app.features.claims.controller import ClaimController
from decodescope.app.features.differences.controller import DifferenceController
from decodescope.app.features.downloads.controller.model_download import ModelDownload
from decodescope.app.features.guess.controller import GuessController
from decodescope.app.features.history.controller.history import Recovery
from decodescope.app.features.history.controller.history_panel import HistoryEdits, HistoryPanel
from decodescope.app.features.history.controller.run_navigation import RunTreeController
from decodescope.app.features.labs.controller.lab_windows import PREFERENCE, SCALE, SPEED, LabWindows
from decodescope.app.features.likelihood.controller import LikelihoodController
from decodescope.app.features.media.controller.prompt_media import MediaBarController, MediaController
from decodescope.app.features.palette.controller.palette import PaletteController
from decodescope.app.features.plugins.controller import PluginController
from decodescope.app.features.presentation.controller.lazy_demo_recorder import LazyDemoRecorder
from decodescope.app.features.same_noise.controller import SameNoiseController, SameNoiseParts
from decodescope.app.features.serving.controller import ServingController
from decodescope.app.features.studies.controller import StudyController
from decodescope.app.features.tours.controller.lessons import Lessons
from decodescope.app.features.tours.controller.tours import Tours
from decodescope.app.features.updates.controller import UpdateController
from decodescope.app.features.updates.state import describe_source
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.menu_bar import MenuBar
from decodescope.app.panels.setup_panel import SetupPanel
from decodescope.app.panels.status_line import StatusLine
from decodescope.app.panels.toolbar import Toolbar
from decodescope.app.panels.window_layout import SideSplitter, WindowBody
from decodescope.app.session.session import Session
from decodescope.app.storage import examples
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.theme.language import SYSTEM, missing_notice, system_language
from decodescope.app.views import VIEWS
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.timeline import Timeline
from decodescope.app.widgets.tab_order import TabOrder
from decodescope.app.window.actions import Actions
from decodescope.app.window.appearance import AppearanceController, LanguageSwitch
from decodescope.app.window.command_table import action_table
from decodescope.app.window.drag_and_drop import DropController
from decodescope.app.window.focus_regions import FocusRegions
from decodescope.app.window.panel_layout import ClosablePanel, PanelLayout, ViewOnlyMode
from decodescope.app.window.presentation_mode import PresentationMode
from decodescope.app.window.run_feed import RunFeed
from decodescope.app.window.view_feed import ViewFeed
from decodescope.app.window.window_parts import (
    AppServices,
    Controllers,
    ExportParts,
    HistoryParts,
    ImportParts,
    Panels,
    WindowParts,
    create_services,
)
from decodescope.app.window.wiring import connect, connect_autosave
from decodescope.core import strategies
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.control.export_items import ExportItems
    from decodescope.app.control.step_inspection import WhatIfController
    from decodescope.app.features.labs.panel import PreferenceLabDialog, SpeedLabDialog
    from decodescope.app.features.labs.view.scale.window import ScaleView
    from decodescope.app.features.presentation.controller.demo_film import DemoRecorder
    from decodescope.app.features.presentation.controller.stage_content import WindowAppearance
    from decodescope.app.features.tours.controller.tour_player import TourPlayer
    from decodescope.app.session.engine import Engine
    from decodescope.app.window.main_window import MainWindow, Step


def assemble(window: MainWindow, store: SettingsStore, engine: Engine | None, language: str = "") -> WindowParts:
    """Build the parts of the window; `language` is that of the command line."""
    store.drop_invalid_values()
    _choose_first_model(store, language or store.settings.appearance.language)
    session = Session(engine, window)
    services = create_services(store, session, LanguageSwitch(store.settings.appearance, session, language))
    window.set_rebuild(partial(_rebuild, window))
    services.language_switch.rebuildRequested.connect(window.rebuild)
    services.language_switch.languageChosen.connect(services.settings_saver.save_settings)
    window.geometryChanged.connect(services.settings_saver.save_soon)
    session.eventsArrived.connect(services.chat_saver.save_soon)
    window.firstPainted.connect(services.history.open_later)
    parts = _build_parts(window, services)
    chats = services.chat_saver.store
    if notices := [*store.notices, *chats.take_notices()]:
        parts.messages.show_notice("\n".join(notices), tr("Settings repaired"))
    elif chats.is_last_elsewhere:
        parts.messages.show_notice(
            tr("The last chat is open in another window. This window has a new one; all chats are in the list."),
            tr("Another window is open"),
        )
    elif notice := missing_notice(services.language_switch.choice):
        _show_missing_translations(parts, notice)
    services.language_switch.languageChosen.connect(partial(_check_translations, window))
    return parts


def _choose_first_model(store: SettingsStore, language: str) -> None:
    """At the first start, choose the story model of the system's language and a prompt in it. Later starts use what was
    chosen last.
    """
    choices = store.settings.choices
    if language != SYSTEM or choices.model or store.path.exists():
        return
    if (example := examples.first_example(system_language())) is not None:
        choices.model, choices.prompt = example.model, example.text


def _check_translations(window: MainWindow, choice: str) -> None:
    """Show why a chosen language is not used."""
    if notice := missing_notice(choice):
        _show_missing_translations(window.parts, notice)


def _show_missing_translations(parts: WindowParts, notice: str) -> None:
    parts.messages.show_notice(notice, tr("Translations are missing"))


def _rebuild(window: MainWindow, old: WindowParts) -> WindowParts:
    """Rebuild all parts in the current language and restore the state of the old ones.

    This is simpler than updating every text, and nothing can be missed. No code of the old parts is running then, and
    their connections to the services end with them.
    """
    from decodescope.app.window.window_state import restore_state, save_state

    state = save_state(window, old)
    for step in (*_saving_steps(window, old), *_stopping_steps(old)):
        step()
    window.clear()
    parts = _build_parts(window, old.services)
    window.body.show()  # else it waits for the event loop
    old.session.emit_current()
    restore_state(state, window, parts)
    parts.centre.create_remaining_views()
    return parts


def _build_parts(window: MainWindow, services: AppServices) -> WindowParts:
    """Build all visible parts and their controllers, in dependency order."""
    session, store = services.session, services.store
    panels = _build_panels()
    body = WindowBody(panels.toolbar, panels.splitter, panels.timeline, panels.status)
    window.setCentralWidget(body)
    menu_bar = MenuBar(window)
    window.setMenuBar(menu_bar)
    appearance = AppearanceController(store.settings.appearance, body)
    controllers = _build_controllers(panels, body, services, appearance)
    layout = _panel_layout(panels)
    window.tab_order = order = TabOrder(window, lambda: _tab_panels(panels, controllers.welcome))
    rooms = FocusRegions(panels, order.tab_stops)
    cleared = ViewOnlyMode(window, (menu_bar, panels.toolbar, panels.status), layout)
    stage = PresentationMode(panels.centre, session, appearance, cleared)
    parts = WindowParts(
        **vars(panels),
        **vars(controllers),
        services=services,
        session=session,
        settings=store.settings,
        store=store,
        menu_bar=menu_bar,
        appearance=appearance,
        layout=layout,
        run_feed=RunFeed(session, panels.centre, panels.status, controllers.messages),
        view_feed=ViewFeed(session, panels.centre, panels.inspector, panels.timeline),
        presentation=stage,
        actions=Actions(
            action_table(window, panels, controllers, appearance, layout, stage, rooms, services.language_switch)
        ),
    )
    connect(window, parts)
    _restore(parts)
    connect_autosave(parts, partial(_settings_updated, window, parts))
    window.at_close(*_closing_steps(window, parts))
    return parts


def _panel_layout(panels: Panels) -> PanelLayout:
    """Return the layout of the panels that can be closed, with their buttons."""
    status = panels.status
    return PanelLayout(
        ClosablePanel(panels.setup, status.setup_toggle),
        ClosablePanel(panels.timeline, status.timeline_toggle),
        ClosablePanel(panels.inspector, status.inspector_toggle),
        panels.splitter,
    )


def _build_panels() -> Panels:
    setup = SetupPanel(examples.load_examples(known_strategies=("", *strategies.registry)))
    centre, inspector = Centre(VIEWS), Inspector()
    splitter = SideSplitter(setup, centre, inspector)
    return Panels(
        toolbar=Toolbar(),
        setup=setup,
        centre=centre,
        inspector=inspector,
        timeline=Timeline(),
        status=StatusLine(),
        splitter=splitter,
    )


def _tab_panels(panels: Panels, welcome: WelcomeController) -> tuple[QWidget, ...]:
    """Return the panels in tab order: what runs, its input, its results. The welcome page is alone when open."""
    if welcome.page is not None and welcome.is_open:
        return (welcome.page,)
    toolbar, setup = panels.toolbar, panels.setup
    return (
        *toolbar.pickers,
        toolbar.run_button,
        toolbar.seed,
        toolbar,
        setup.prompt.editor,
        setup,
        *panels.centre.columns,
        panels.inspector,
        panels.timeline,
        panels.status,
    )


def _build_controllers(
    panels: Panels, body: WindowBody, services: AppServices, appearance: WindowAppearance
) -> Controllers:
    store, session, models = services.store, services.session, services.models
    settings = store.settings
    messages = _messages(panels)
    chosen = _chosen_settings(panels, store, models, session)
    loading = ModelLoadController(chosen.model, models, settings, session)
    media = MediaController(chosen.model, services.media, settings.choices)
    media_bar = MediaBarController(panels.setup.prompt, media, lambda: store.data_folder)
    borrowed = BorrowedSettings(SettingsSources(chosen, panels.setup, media, panels.centre))
    setup = SettingsController(chosen, panels.setup, media, borrowed, settings.choices)
    chat = ChatController(panels.setup.prompt, panels.centre, services.chat_saver, settings.chat)
    chats = ChatLibrary(chat, services.chat_saver, panels.centre, messages, settings.chat)
    adapters = AdapterController(
        panels.setup.adapters, chosen.model, loading, settings.models, session, messages, panels.centre
    )
    length = PromptLengthController(session, panels.setup.prompt, chat, loading, chosen.cache, messages)
    requests = RequestBuilder(chosen, RunInput(chat, media, length), loading, settings.compute, adapters)
    changes = _changes(panels, session, requests, setup)
    runs = RunController(session, requests, messages)
    tours = _tours(panels, body, session, chosen, setup, runs, borrowed)
    taking = _export_parts(panels, session, setup, messages, appearance)
    fetching = _import_parts(panels, services, chosen.model, setup, messages)
    labs = _labs(panels, services, chosen.model, loading, taking.export)
    studies = StudyController(
        panels.centre, services.studies, chosen.model, loading, taking.recorded_runs, messages, session
    )
    return Controllers(
        **vars(_history_parts(panels, services, messages)),
        **vars(taking),
        **vars(fetching),
        chosen=chosen,
        borrowed=borrowed,
        loading=loading,
        adapters=adapters,
        prompt_length=length,
        model_task=ModelTaskController(chosen.model, chosen.strategy, panels.setup.prompt, messages),
        requests=requests,
        runs=runs,
        run_tree=RunTreeController(session, panels.centre, services.history, services.family),
        reuse_marks=ReuseMarks(panels.setup.prompt, session, loading, settings.compute),
        scoring=ScoreController(panels.setup.prompt, session, requests, models),
        weights=WeightsController(chosen.model, loading, panels.toolbar),
        settings_controller=setup,
        media=media,
        media_bar=media_bar,
        chat=chat,
        chat_fit=ChatFitController(session, chat, panels.setup.prompt, requests),
        chats=chats,
        memory_fit=MemoryFitController(session, panels.setup, requests),
        word_spellings=WordSpellingsController(session, panels.setup.parameters),
        model_export=ModelExportController(panels.centre, session, loading, messages, adapters),
        prefixes=PrefixController(session, loading, messages, settings.compute),
        labs=labs,
        messages=messages,
        dialogs=Dialogs(panels.centre, store, session, changes, describe_source),
        updates=UpdateController(panels.centre, settings.updates, messages),
        dropping=DropController(
            panels.centre,
            taking.recorded_runs,
            fetching.folders,
            fetching.presets,
            media,
            fetching.model_download,
            labs,
            setup,
            messages,
            adapters,
            chats,
            studies,
        ),
        diagnostics=Diagnostics(panels.centre, session, chosen, settings, messages),
        glossary=GlossaryController(panels.toolbar, panels.setup, panels.centre),
        changes=changes,
        sounds=SoundEffectController(session, settings.appearance, panels.centre),
        tours=tours,
        lessons=Lessons(tours, panels.centre, messages, lambda: store.data_folder),
        guess=GuessController(body.dock, panels.centre, session, messages, borrowed),
        screen_reader_text=ScreenReaderText(session, panels.centre),
        palette=PaletteController(body, settings.habits),
        plugins=PluginController(body, services.plugins, chosen, messages),
        likelihood=LikelihoodController(body, session, requests, loading),
        differences=DifferenceController(body, session, services.history, requests, chosen.model, loading),
        serving=ServingController(body, session, loading, adapters, settings.compute, messages),
        same_noise=SameNoiseController(
            body, SameNoiseParts(session, chosen, requests, loading, setup, runs, taking.export)
        ),
        claims=ClaimController(body, session, chosen, loading, settings.compute, lambda: store.data_folder),
        studies=studies,
        empty_view_action=EmptyViewAction(session, chosen, panels.setup.prompt, runs, borrowed),
        welcome=WelcomeController(body, panels.setup, session, settings.habits),
    )


def _labs(
    panels: Panels, services: AppServices, model: ModelChoice, loading: ModelLoadController, export: ExportController
) -> LabWindows:
    """Return the lab windows with their makers."""

    def scale(window: QWidget) -> ScaleView:
        from decodescope.app.features.labs.controller.scale import ScaleController, ScaleExport

        lab = ScaleController(window, services.labs.scale()).lab
        ScaleExport(lab, export)
        return lab

    def preference(window: QWidget) -> PreferenceLabDialog:
        from decodescope.app.features.labs.controller.preference import PreferenceController

        return PreferenceController(window, services.labs.preference(), model, services.history).lab

    def speed(window: QWidget) -> SpeedLabDialog:
        from decodescope.app.features.labs.controller.speed import SpeedController, SpeedExport

        work = services.labs.speed()
        lab = SpeedController(window, work, model, loading).lab
        SpeedExport(lab, work, export)
        return lab

    return LabWindows(panels.centre, {SCALE: scale, PREFERENCE: preference, SPEED: speed})


def _history_parts(panels: Panels, services: AppServices, messages: Messages) -> HistoryParts:
    session, history, steps = services.session, services.history, services.run_navigation
    changes = HistoryEdits(panels.setup, history, services.store.settings.history)
    panel = HistoryPanel(panels.setup, history, changes, steps)
    for signal in (session.runStarted, session.runShown):
        signal.connect(panel.mark_shown)
    return HistoryParts(
        settings_saver=services.settings_saver,
        history=history,
        history_edits=changes,
        history_panel=panel,
        recovery=Recovery(history, messages),
        run_navigation=steps,
    )


def _messages(panels: Panels) -> Messages:
    return Messages(panels.centre.error_banner, panels.centre.notice_banner, panels.setup.parameters)


def _export_parts(
    panels: Panels, session: Session, setup: SettingsController, messages: Messages, appearance: WindowAppearance
) -> ExportParts:
    recorded = RecordedRuns(panels.centre, session, setup, messages)
    return ExportParts(
        recorded_runs=recorded,
        export=ExportController(panels.centre, partial(_exports, panels, session), recorded, messages),
        clipboard=CopyController(panels.centre, messages),
        code=CodeController(panels.centre, session, messages),
        demos=_demos(panels, session, messages, appearance),
    )


def _import_parts(
    panels: Panels, services: AppServices, model: ModelChoice, setup: SettingsController, messages: Messages
) -> ImportParts:
    return ImportParts(
        presets=PresetLibrary(panels.setup.presets, services.store.presets_folder, setup, messages),
        folders=ModelFolders(panels.setup, model, messages),
        model_download=ModelDownload(panels.centre, services.downloads, model, services.store.settings.models),
    )


def _exports(panels: Panels, session: Session) -> ExportItems:
    from decodescope.app.control.export_items import ExportItems

    return ExportItems(panels.centre, panels.inspector, panels.timeline, session)


def _changes(
    panels: Panels, session: Session, requests: RequestBuilder, setup: SettingsController
) -> SettingsChangeWatcher:
    supposer = partial(_what_if_controller, session, requests, setup, panels.inspector)
    return SettingsChangeWatcher(session, requests, panels.status, supposer)


def _what_if_controller(
    session: Session, requests: RequestBuilder, setup: SettingsController, inspector: Inspector
) -> WhatIfController:
    from decodescope.app.control.step_inspection import WhatIfController

    return WhatIfController(session, requests, setup, inspector)


def _tours(
    panels: Panels,
    body: WindowBody,
    session: Session,
    chosen: ChosenSettings,
    setup: SettingsController,
    runs: RunController,
    borrowed: BorrowedSettings,
) -> Tours:
    """Return the tours; their panel is docked at the bottom on first use."""

    def make() -> TourPlayer:
        from decodescope.app.features.tours.controller.tour_player import TourPlayer, TourSettings, TourViews
        from decodescope.app.features.tours.controller.tour_ui import TourTargets, TourUi

        settings = TourSettings(setup, chosen, panels.setup.prompt, runs, borrowed)
        targets = TourTargets(body, panels.centre, panels.setup, panels.inspector)
        return TourPlayer(settings, TourViews(session, panels.centre), TourUi(body, body.dock, targets), session)

    return Tours(make, panels.centre)


def _demos(panels: Panels, session: Session, messages: Messages, appearance: WindowAppearance) -> LazyDemoRecorder:
    def make() -> DemoRecorder:
        from decodescope.app.features.presentation.controller.demo_film import DemoRecorder

        return DemoRecorder(panels.centre, session, messages, appearance)

    return LazyDemoRecorder(make, panels.centre)


def _chosen_settings(panels: Panels, store: SettingsStore, models: ModelList, session: Session) -> ChosenSettings:
    toolbar, setup, choices = panels.toolbar, panels.setup, store.settings.choices
    model = ModelChoice(toolbar.model, models, store.settings.models, choices.model)
    session.modelLoading.connect(model.on_loading)  # before listeners of the signals of `model`
    session.modelReady.connect(model.on_ready)
    session.failed.connect(model.on_failed)
    strategy = StrategyChoice(toolbar.strategy, setup.parameters, choices.strategy, choices.values)
    cache = CacheChoice(toolbar.cache, setup.cache_parameters, choices.cache, choices.cache_values)
    drafts = DraftChoice(toolbar.draft, models, model, strategy)
    return ChosenSettings(model, strategy, cache, drafts, toolbar.seed)


def _restore(parts: WindowParts) -> None:
    """Restore the state from when the window was closed."""
    layout = parts.settings.layout
    parts.appearance.apply()
    parts.setup.parameters.restore_groups(layout.groups)
    parts.centre.show_view(layout.view)
    parts.layout.restore(layout)
    parts.setup.prompt.editor.setFocus()


def _closing_steps(window: MainWindow, parts: WindowParts) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps that save before the window is hidden, and those that stop everything after."""
    return _saving_steps(window, parts), (
        *_stopping_steps(parts),
        parts.services.downloads.stop_all,
        parts.chosen.model.stop_search,
        parts.services.media.close,
        parts.services.labs.stop_all,
        parts.services.studies.close,
        parts.services.kernel_builder.close,
        parts.services.plugins.close,
        parts.serving.close,
        parts.services.live.close,
        parts.session.shut_down,
        parts.services.chat_saver.stop,
        parts.history.stop,
    )


def _saving_steps(window: MainWindow, parts: WindowParts) -> tuple[Step, ...]:
    """Return the steps that save all settings."""

    return (
        parts.presentation.leave,
        partial(_store_layout, window, parts),
        parts.settings_controller.store_settings,
        parts.settings_saver.stop,
        parts.settings_saver.save_settings,
        parts.services.chat_saver.save_pending,
    )


def _store_layout(window: MainWindow, parts: WindowParts) -> None:
    """Store the layout of panels and window in the settings."""
    layout = parts.settings.layout
    own = parts.borrowed.own_settings
    layout.groups, layout.view = dict(own.open_groups), own.view
    parts.layout.store(layout)
    window.store_geometry()


@contextmanager
def _settings_updated(window: MainWindow, parts: WindowParts) -> Iterator[None]:
    """Update the settings from the window while they are written."""
    if not parts.presentation.is_on:  # the presentation layout is temporary
        _store_layout(window, parts)
    with parts.settings_controller.updated_settings():
        yield


def _stopping_steps(parts: WindowParts) -> tuple[Step, ...]:
    """Return the steps that stop what depends on the visible parts."""
    return (
        parts.studies.close,
        parts.loading.stop,
        parts.memory_fit.stop,
        parts.chat_fit.stop,
        parts.word_spellings.stop,
        parts.prompt_length.stop,
        parts.status.stop_timer,
        parts.media_bar.stop,
        parts.updates.stop,
        parts.history_edits.commit_deletions,
    )
