"""The parts of an assembled window, for assembly, command line and tests."""

from __future__ import annotations

from typing import NamedTuple, dataclass_transform

from app.control.adapters import AdapterController
from app.control.audible_feedback import ScreenReaderText, SoundEffectController
from app.control.borrowed_settings import BorrowedSettings
from app.control.chat import ChatController
from app.control.dialogs import CodeController, Diagnostics, Dialogs
from app.control.export import CopyController, ExportController
from app.control.help import GlossaryController, WelcomeController
from app.control.memory_fit import MemoryFitController
from app.control.messages import Messages
from app.control.model_choice import ModelFolders
from app.control.model_export import ModelExportController
from app.control.model_list import ModelList
from app.control.model_loading import ModelLoadController, WeightsController
from app.control.persistence import ChatSaver, SettingsSaver
from app.control.prefixes import PrefixController, ReuseMarks
from app.control.recorded_runs import RecordedRuns
from app.control.requests import ChosenSettings, RequestBuilder
from app.control.run_control import EmptyViewAction, RunController
from app.control.scoring import ScoreController
from app.control.settings_controller import PresetLibrary, SettingsController
from app.control.settings_watcher import SettingsChangeWatcher
from app.features.downloads.controller.model_download import LazyDownloads, ModelDownload
from app.features.guess.controller import GuessController
from app.features.history.controller.history import History, Recovery
from app.features.history.controller.history_panel import HistoryEdits, HistoryPanel
from app.features.history.controller.run_navigation import RunNavigation, RunTreeController
from app.features.labs.controller.lab_windows import LabJobs, LabWindows
from app.features.live.controller import LiveRuns
from app.features.media.controller.prompt_media import MediaBarController, MediaController
from app.features.media.session.media_cache import MediaCache
from app.features.palette.controller.palette import PaletteController
from app.features.plugins.controller import PluginController
from app.features.plugins.session import PluginJobs
from app.features.presentation.controller.lazy_demo_recorder import LazyDemoRecorder
from app.features.tours.controller.tours import Tours
from app.features.updates.controller import UpdateController
from app.panels.centre import Centre
from app.panels.menu_bar import MenuBar
from app.panels.setup_panel import SetupPanel
from app.panels.status_line import StatusLine
from app.panels.toolbar import Toolbar
from app.panels.window_layout import SideSplitter
from app.session.kernel_builder import KernelBuilder
from app.session.session import Session
from app.state.conversation import Conversation
from app.state.run_history import RunTrees
from app.storage.chat_file import ChatStore, claim_chat
from app.storage.settings import Settings
from app.storage.settings_file import SettingsStore
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline
from app.window.actions import Actions
from app.window.appearance import AppearanceController, LanguageSwitch
from app.window.drag_and_drop import DropController
from app.window.panel_layout import PanelLayout
from app.window.presentation_mode import PresentationMode
from app.window.run_feed import RunFeed
from app.window.view_feed import ViewFeed


class AppServices(NamedTuple):
    """Non-visual objects that live as long as the window."""

    store: SettingsStore
    session: Session
    language_switch: LanguageSwitch
    settings_saver: SettingsSaver
    history: History
    run_navigation: RunNavigation
    chat_store: ChatStore
    chat_saver: ChatSaver
    conversation: Conversation
    family: RunTrees
    models: ModelList
    downloads: LazyDownloads
    media: MediaCache
    labs: LabJobs
    kernel_builder: KernelBuilder
    plugins: PluginJobs
    live: LiveRuns


def create_services(store: SettingsStore, session: Session, switch: LanguageSwitch) -> AppServices:
    """Create the services and restore the chat."""
    keeper, chats, conversation = SettingsSaver(store), claim_chat(store.folder), Conversation()
    chats.restore(conversation)
    history = History(session, lambda: store.data_folder, store.settings.history, keeper)
    return AppServices(
        store=store,
        session=session,
        language_switch=switch,
        settings_saver=keeper,
        history=history,
        run_navigation=RunNavigation(session, history),
        chat_store=chats,
        chat_saver=ChatSaver(conversation, chats, keeper),
        conversation=conversation,
        family=RunTrees(),
        models=ModelList(),
        downloads=LazyDownloads(session),
        media=MediaCache(session),
        labs=LabJobs(lambda: store.data_folder),
        kernel_builder=KernelBuilder(session, lambda: store.settings.compute.quick_steps),
        plugins=PluginJobs(session, lambda: store.data_folder),
        live=LiveRuns(session, history.recording_path, history.save_received),
    )


@dataclass_transform(kw_only_default=True, eq_default=False)
class _PartGroup:
    """Group of parts by name. A dataclass for type checkers; real dataclasses would slow each start."""

    def __init__(self, **parts: object) -> None:
        vars(self).update(parts)


class Panels(_PartGroup):
    """The visible panels."""

    toolbar: Toolbar
    setup: SetupPanel
    centre: Centre
    inspector: Inspector
    timeline: Timeline
    status: StatusLine
    splitter: SideSplitter


class HistoryParts(_PartGroup):
    """Saving and restoring of runs and settings."""

    settings_saver: SettingsSaver
    history: History
    history_edits: HistoryEdits
    history_panel: HistoryPanel
    recovery: Recovery
    run_navigation: RunNavigation


class ExportParts(_PartGroup):
    """Export to files and the clipboard."""

    recorded_runs: RecordedRuns
    export: ExportController
    clipboard: CopyController
    code: CodeController
    demos: LazyDemoRecorder


class ImportParts(_PartGroup):
    """Import of presets and models."""

    presets: PresetLibrary
    folders: ModelFolders
    model_download: ModelDownload


class Controllers(HistoryParts, ExportParts, ImportParts):
    """All controllers."""

    chosen: ChosenSettings
    borrowed: BorrowedSettings
    loading: ModelLoadController
    adapters: AdapterController
    requests: RequestBuilder
    runs: RunController
    scoring: ScoreController
    weights: WeightsController
    run_tree: RunTreeController
    reuse_marks: ReuseMarks
    settings_controller: SettingsController
    media: MediaController
    media_bar: MediaBarController
    chat: ChatController
    memory_fit: MemoryFitController
    model_export: ModelExportController
    prefixes: PrefixController
    labs: LabWindows
    messages: Messages
    dialogs: Dialogs
    updates: UpdateController
    dropping: DropController
    diagnostics: Diagnostics
    glossary: GlossaryController
    changes: SettingsChangeWatcher
    sounds: SoundEffectController
    tours: Tours
    guess: GuessController
    screen_reader_text: ScreenReaderText
    palette: PaletteController
    plugins: PluginController
    welcome: WelcomeController
    empty_view_action: EmptyViewAction


class WindowParts(Panels, Controllers):
    """All parts by name. Parts receive only what they need, never this object."""

    services: AppServices
    session: Session
    settings: Settings
    store: SettingsStore
    menu_bar: MenuBar
    appearance: AppearanceController
    layout: PanelLayout
    run_feed: RunFeed
    view_feed: ViewFeed
    presentation: PresentationMode
    actions: Actions
