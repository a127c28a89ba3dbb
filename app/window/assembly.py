"""Builds the parts of the main window and hands each the few that it works on; `wiring` connects what they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from app.control.borrowed_settings import BorrowedSettings
from app.control.chat import ChatController
from app.control.clipboard import CopyController
from app.control.diagnostics import Diagnostics
from app.control.dialogs import Dialogs
from app.control.draft_choice import DraftChoice
from app.control.dropping import DropController
from app.control.empty_view_action import EmptyViewAction
from app.control.export import ExportController
from app.control.glossary_terms import Terms
from app.control.guess import GuessController
from app.control.history_edits import KeptChanges
from app.control.history_panel import HistoryPanel
from app.control.labs.lab_windows import PREFERENCE, SCALE, SPEED, Labs
from app.control.live_text import LiveText
from app.control.media import MediaController
from app.control.media_bar import MediaBarController
from app.control.memory_fit import FitController
from app.control.messages import Messages
from app.control.model_choice import ModelChoice
from app.control.model_download import ModelDownload
from app.control.model_folders import ModelFolders
from app.control.model_list import ModelList
from app.control.model_loading import LoadController
from app.control.palette.controller import Palette
from app.control.prefix_marks import ReuseMarks
from app.control.prefixes import PrefixController
from app.control.preset_library import PresetLibrary
from app.control.recorded_runs import RecordedRuns
from app.control.recovery import Recovery
from app.control.registry_choice import CacheChoice, StrategyChoice
from app.control.requests import ChosenSettings, RequestBuilder, RunInput
from app.control.run_control import RunController
from app.control.run_tree import FamilyController
from app.control.scoring import ScoreController
from app.control.script_window import CodeController
from app.control.setting_changes import ChangeWatch
from app.control.settings_setup import SetupController
from app.control.settings_snapshot import SettingsSources
from app.control.sound_effects import CueController
from app.control.stage.demos import Demos
from app.control.tours.tours import Tours
from app.control.weights import WeightsController
from app.control.welcome import Welcome
from app.panels.centre import Centre
from app.panels.menu_bar import MenuBar
from app.panels.setup import SetupPanel
from app.panels.side_splitter import SideSplitter
from app.panels.status_line import StatusLine
from app.panels.toolbar import Toolbar
from app.panels.window_body import Body
from app.session.session import Session
from app.storage import examples
from app.storage.chat_file import own_chat_notice
from app.storage.settings_file import SettingsStore
from app.views import VIEWS
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline
from app.widgets.tab_order import TabOrder
from app.window.action_table import action_table
from app.window.actions import Actions
from app.window.appearance import Appearance
from app.window.focus_regions import FocusRegions
from app.window.language_switch import LanguageSwitch
from app.window.panel_layout import Panel, PanelLayout
from app.window.presentation_mode import PresentationMode
from app.window.run_feed import RunFeed
from app.window.services import AppServices, begin
from app.window.view_feed import ViewFeed
from app.window.view_only_mode import ViewOnlyMode
from app.window.window_parts import Controllers, Fetching, Keeping, Panels, Taking, WindowParts
from app.window.wiring import connect, keep_by_itself
from core import strategies
from core.former_name import describe_adoption
from resources.language import tr

if TYPE_CHECKING:
    from app.control.exports import Exports
    from app.control.stage.demo import DemoRecorder
    from app.control.stage.window_appearance import WindowAppearance
    from app.control.tours.tour_player import TourPlayer
    from app.control.what_if import WhatIfController
    from app.panels.preference_lab import PreferenceLab
    from app.panels.speed_lab import SpeedLab
    from app.session.engine import Engine
    from app.views.labs.scale.window import ScaleView
    from app.window.main_window import MainWindow, Step


def assemble(window: MainWindow, store: SettingsStore, engine: Engine | None, language: str = "") -> WindowParts:
    """Give the window its parts; `language` is what the command line has named."""
    store.drop_unusable()
    session = Session(engine, window)
    lasting = begin(store, session, LanguageSwitch(store.settings.appearance, session, language))
    window.at_renewal(partial(_renewed, window))
    lasting.switch.wanted.connect(window.renew)
    lasting.switch.chosen.connect(lasting.keeper.keep_settings)
    window.placed.connect(lasting.keeper.keep_soon)
    session.eventsArrived.connect(lasting.chat_keeper.keep_soon)
    window.painted.connect(lasting.history.open_later)
    parts = _put_together(window, lasting)
    repaired = [*store.notices, *lasting.chats.notices]
    if notices := [*describe_adoption(store.adopted), *repaired]:
        title = tr("The settings were repaired") if repaired else tr("Decodescope was called Tokenscope before")
        parts.messages.show_notice("\n".join(notices), title)
    elif told := own_chat_notice(lasting.chats):
        parts.messages.show_notice(told, tr("Another window is open"))
    return parts


def _renewed(window: MainWindow, old: WindowParts) -> WindowParts:
    """The same parts anew, in the language that is spoken now, in the place of the old ones, standing as those did.

    Simpler than to have every part say everything once more, and nothing can be forgotten: what a part says, it says as
    it is made. Nothing of the old parts is on the stack then, and whatever listened to what lasts goes with them.
    """
    from app.window.window_state import give_back, standing_of

    standing = standing_of(window, old)
    for step in (*_remembered(window, old), *_stopped(old)):
        step()
    window.clear()
    parts = _put_together(window, old.lasting)
    window.body.show()  # else it waits for the event loop
    old.session.tell_again()
    give_back(standing, window, parts)
    parts.centre.make_the_rest()
    return parts


def _put_together(window: MainWindow, lasting: AppServices) -> WindowParts:
    """Everything that is seen and what works on it, in the order they need each other."""
    session, store = lasting.session, lasting.store
    panels = _panels()
    body = Body(panels.toolbar, panels.splitter, panels.timeline, panels.status)
    window.setCentralWidget(body)
    menu_bar = MenuBar(window)
    window.setMenuBar(menu_bar)
    appearance = Appearance(store.settings.appearance, body)
    controllers = _controllers(panels, body, lasting, appearance)
    layout = _panel_layout(panels)
    window.tab_order = order = TabOrder(window, lambda: _tab_panels(panels, controllers.welcome))
    rooms = FocusRegions(panels, order.stops)
    cleared = ViewOnlyMode(window, (menu_bar, panels.toolbar, panels.status), layout)
    stage = PresentationMode(panels.centre, session, appearance, cleared)
    parts = WindowParts(
        **vars(panels),
        **vars(controllers),
        lasting=lasting,
        session=session,
        settings=store.settings,
        store=store,
        menu_bar=menu_bar,
        appearance=appearance,
        layout=layout,
        run_feed=RunFeed(session, panels.centre, panels.status, controllers.messages),
        view_feed=ViewFeed(session, panels.centre, panels.inspector, panels.timeline),
        stage=stage,
        actions=Actions(action_table(window, panels, controllers, appearance, layout, stage, rooms, lasting.switch)),
    )
    connect(window, parts)
    _restore(parts)
    keep_by_itself(parts, partial(_written_down, window, parts))
    window.at_close(*_last_steps(window, parts))
    return parts


def _panel_layout(panels: Panels) -> PanelLayout:
    """The panels that can be closed, each with the button that does it."""
    status = panels.status
    return PanelLayout(
        Panel(panels.setup, status.setup_toggle),
        Panel(panels.timeline, status.timeline_toggle),
        Panel(panels.inspector, status.inspector_toggle),
        panels.splitter,
    )


def _panels() -> Panels:
    setup = SetupPanel(examples.load(known_strategies=("", *strategies.registry)))
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


def _tab_panels(panels: Panels, welcome: Welcome) -> tuple[QWidget, ...]:
    """In the order they are worked with: what runs, what it begins from, what came of it. A page that covers all is
    alone."""
    if welcome.page is not None and welcome.is_open:
        return (welcome.page,)
    toolbar, setup = panels.toolbar, panels.setup
    return (
        *toolbar.pickers,
        toolbar.run,
        toolbar.seed,
        toolbar,
        setup.prompt.editor,
        setup,
        *panels.centre.columns,
        panels.inspector,
        panels.timeline,
        panels.status,
    )


def _controllers(panels: Panels, body: Body, lasting: AppServices, look: WindowAppearance) -> Controllers:
    store, session, models = lasting.store, lasting.session, lasting.models
    settings = store.settings
    messages = _messages(panels)
    chosen = _chosen(panels, store, models, session)
    loading = LoadController(chosen.model, models, settings, session)
    media = MediaController(chosen.model, lasting.media, settings.choices)
    media_bar = MediaBarController(panels.setup.prompt, media, lambda: store.data)
    borrowed = BorrowedSettings(SettingsSources(chosen, panels.setup, media, panels.centre))
    setup = SetupController(chosen, panels.setup, media, borrowed, settings.choices)
    chat = ChatController(panels.setup.prompt, panels.centre, lasting.conversation)
    requests = RequestBuilder(chosen, RunInput(chat, media), loading, settings.compute)
    changes = _changes(panels, session, requests, setup)
    runs = RunController(session, requests, messages)
    tours = _tours(panels, body, session, chosen, setup, runs, borrowed)
    taking = _taking(panels, session, setup, messages, look)
    fetching = _fetching(panels, lasting, chosen.model, setup, messages)
    labs = _labs(panels, lasting, chosen.model, loading, taking.export)
    return Controllers(
        **vars(_keeping(panels, lasting, messages)),
        **vars(taking),
        **vars(fetching),
        chosen=chosen,
        borrowed=borrowed,
        loading=loading,
        requests=requests,
        runs=runs,
        family=FamilyController(session, panels.centre, lasting.history, lasting.family),
        reuse=ReuseMarks(panels.setup.prompt, session, loading, settings.compute),
        scoring=ScoreController(panels.setup.prompt, session, requests, models),
        weights=WeightsController(chosen.model, loading, panels.toolbar),
        controller=setup,
        media=media,
        media_bar=media_bar,
        chat=chat,
        fit=FitController(session, panels.setup, requests),
        prefixes=PrefixController(session, loading, messages, settings.compute),
        labs=labs,
        messages=messages,
        dialogs=Dialogs(panels.centre, store, session, changes),
        dropping=DropController(
            panels.centre,
            taking.recorded,
            fetching.folders,
            fetching.library,
            media,
            fetching.getting,
            labs,
            setup,
            messages,
        ),
        diagnostics=Diagnostics(panels.centre, session, chosen, settings, messages),
        terms=Terms(panels.toolbar, panels.setup, panels.centre),
        changes=changes,
        cues=CueController(session, settings.appearance, panels.centre),
        tours=tours,
        guess=GuessController(body.dock, panels.centre, session, messages, borrowed),
        live_text=LiveText(session, panels.centre),
        palette=Palette(body, settings.habits),
        filling=EmptyViewAction(session, chosen, panels.setup.prompt, runs, borrowed),
        welcome=Welcome(body, panels.setup, session, settings.habits),
    )


def _labs(
    panels: Panels, lasting: AppServices, model: ModelChoice, loading: LoadController, export: ExportController
) -> Labs:
    """The way to the labs' rooms, and what each of them works on."""

    def scale(window: QWidget) -> ScaleView:
        from app.control.labs.scale import ScaleController

        return ScaleController(window, lasting.labs.scale()).lab

    def preference(window: QWidget) -> PreferenceLab:
        from app.control.labs.preference import PreferenceController

        return PreferenceController(window, lasting.labs.preference(), model, lasting.history).lab

    def speed(window: QWidget) -> SpeedLab:
        from app.control.labs.speed import SpeedController, SpeedTaking

        work = lasting.labs.speed()
        lab = SpeedController(window, work, model, loading).lab
        SpeedTaking(lab, work, export)
        return lab

    return Labs(panels.centre, {SCALE: scale, PREFERENCE: preference, SPEED: speed})


def _keeping(panels: Panels, lasting: AppServices, messages: Messages) -> Keeping:
    session, history, steps = lasting.session, lasting.history, lasting.steps
    changes = KeptChanges(panels.setup, history, lasting.store.settings.history)
    panel = HistoryPanel(panels.setup, history, changes, steps)
    for signal in (session.runStarted, session.runShown):
        signal.connect(panel.mark)
    return Keeping(
        keeper=lasting.keeper,
        history=history,
        kept_changes=changes,
        history_panel=panel,
        recovery=Recovery(history, messages),
        steps=steps,
    )


def _messages(panels: Panels) -> Messages:
    return Messages(panels.centre.error_banner, panels.centre.notice_banner, panels.setup.parameters)


def _taking(
    panels: Panels, session: Session, setup: SetupController, messages: Messages, look: WindowAppearance
) -> Taking:
    recorded = RecordedRuns(panels.centre, session, setup, messages)
    return Taking(
        recorded=recorded,
        export=ExportController(panels.centre, partial(_exports, panels, session), recorded),
        copying=CopyController(panels.centre, messages),
        code=CodeController(panels.centre, session, messages),
        demos=_demos(panels, session, messages, look),
    )


def _fetching(
    panels: Panels, lasting: AppServices, model: ModelChoice, setup: SetupController, messages: Messages
) -> Fetching:
    return Fetching(
        library=PresetLibrary(panels.setup.presets, lasting.store.presets, setup, messages),
        folders=ModelFolders(panels.setup, model, messages),
        getting=ModelDownload(panels.centre, lasting.downloads, model, lasting.store.settings.models),
    )


def _exports(panels: Panels, session: Session) -> Exports:
    from app.control.exports import Exports

    return Exports(panels.centre, panels.inspector, panels.timeline, session)


def _changes(panels: Panels, session: Session, requests: RequestBuilder, setup: SetupController) -> ChangeWatch:
    supposer = partial(_supposer, session, requests, setup, panels.inspector)
    return ChangeWatch(session, requests, panels.status, supposer)


def _supposer(
    session: Session, requests: RequestBuilder, setup: SetupController, inspector: Inspector
) -> WhatIfController:
    from app.control.what_if import WhatIfController

    return WhatIfController(session, requests, setup, inspector)


def _tours(
    panels: Panels,
    body: Body,
    session: Session,
    chosen: ChosenSettings,
    setup: SetupController,
    runs: RunController,
    borrowed: BorrowedSettings,
) -> Tours:
    """The way to the tours, whose panel stands at the foot of the window once there is one."""

    def make() -> TourPlayer:
        from app.control.tours.tour_player import TourPlayer
        from app.control.tours.tour_runs import TourPlaces
        from app.control.tours.tour_settings import TourSettings
        from app.control.tours.tour_targets import Targets
        from app.control.tours.tour_ui import TourFace

        settings = TourSettings(setup, chosen, panels.setup.prompt, runs, borrowed)
        targets = Targets(body, panels.centre, panels.setup, panels.inspector)
        return TourPlayer(settings, TourPlaces(session, panels.centre), TourFace(body, body.dock, targets), session)

    return Tours(make, panels.centre)


def _demos(panels: Panels, session: Session, messages: Messages, look: WindowAppearance) -> Demos:
    def make() -> DemoRecorder:
        from app.control.stage.demo import DemoRecorder

        return DemoRecorder(panels.centre, session, messages, look)

    return Demos(make, panels.centre)


def _chosen(panels: Panels, store: SettingsStore, models: ModelList, session: Session) -> ChosenSettings:
    toolbar, setup, kept = panels.toolbar, panels.setup, store.settings.choices
    model = ModelChoice(toolbar.model, models, store.settings.models, kept.model)
    session.modelLoading.connect(model.on_loading)  # before those that hear of a model by what `model` says
    session.modelReady.connect(model.on_ready)
    session.failed.connect(model.on_failed)
    strategy = StrategyChoice(toolbar.strategy, setup.parameters, kept.strategy, kept.values)
    cache = CacheChoice(toolbar.cache, setup.cache_parameters, kept.cache, kept.cache_values)
    drafts = DraftChoice(toolbar.draft, models, model, strategy)
    return ChosenSettings(model, strategy, cache, drafts, toolbar.seed)


def _restore(parts: WindowParts) -> None:
    """Everything as it was when the window was closed."""
    kept = parts.settings.layout
    parts.appearance.apply()
    parts.setup.parameters.set_advanced(kept.advanced)
    parts.centre.show_view(kept.view)
    parts.layout.restore(kept)
    parts.setup.prompt.editor.setFocus()


def _last_steps(window: MainWindow, parts: WindowParts) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """What is remembered before the window is hidden, and what is stopped behind it."""
    return _remembered(window, parts), (
        *_stopped(parts),
        parts.lasting.downloads.end,
        parts.lasting.media.end,
        parts.lasting.labs.end,
        parts.lasting.quickening.end,
        parts.session.shut_down,
        parts.lasting.chat_keeper.stop,
        parts.history.stop,
    )


def _remembered(window: MainWindow, parts: WindowParts) -> tuple[Step, ...]:
    """What becomes of everything that is set."""

    return (
        parts.stage.leave,
        partial(_remember_layout, window, parts),
        parts.controller.remember,
        parts.keeper.stop,
        parts.keeper.keep_settings,
        parts.lasting.chat_keeper.keep_due,
    )


def _remember_layout(window: MainWindow, parts: WindowParts) -> None:
    """Write the panels' places and the window's into the settings."""
    kept = parts.settings.layout
    own = parts.borrowed.kept
    kept.advanced, kept.view = own.is_advanced, own.view
    parts.layout.remember(kept)
    window.keep_geometry()


@contextmanager
def _written_down(window: MainWindow, parts: WindowParts) -> Iterator[None]:
    """Let the settings hold everything that is set, for as long as they are written."""
    if not parts.stage.is_on:  # its panels and its size are not the reader's own
        _remember_layout(window, parts)
    with parts.controller.remembered():
        yield


def _stopped(parts: WindowParts) -> tuple[Step, ...]:
    """What must not go on without the parts that are seen."""
    return parts.loading.stop, parts.fit.stop, parts.status.stop, parts.media_bar.stop, parts.kept_changes.settle
