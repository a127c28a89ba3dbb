"""The parts of an assembled window, for assembly, command line and tests."""

from __future__ import annotations

from typing import NamedTuple, dataclass_transform

from decodescope.app.control.adapters import AdapterController
from decodescope.app.control.audible_feedback import ScreenReaderText, SoundEffectController
from decodescope.app.control.borrowed_settings import BorrowedSettings
from decodescope.app.control.chat import ChatController, ChatLibrary
from decodescope.app.control.chat_fit import ChatFitController
from decodescope.app.control.dialogs import CodeController, Diagnostics, Dialogs
from decodescope.app.control.export import CopyController, ExportController
from decodescope.app.control.help import GlossaryController, WelcomeController
from decodescope.app.control.memory_fit import MemoryFitController
from decodescope.app.control.messages import Messages
from decodescope.app.control.model_choice import ModelFolders
from decodescope.app.control.model_export import ModelExportController
from decodescope.app.control.model_list import ModelList
from decodescope.app.control.model_loading import ModelLoadController, WeightsController
from decodescope.app.control.model_task import ModelTaskController
from decodescope.app.control.persistence import ChatSaver, SettingsSaver
from decodescope.app.control.prefixes import PrefixController, ReuseMarks
from decodescope.app.control.prompt_length import PromptLengthController
from decodescope.app.control.recorded_runs import RecordedRuns
from decodescope.app.control.requests import ChosenSettings, RequestBuilder
from decodescope.app.control.run_control import EmptyViewAction, RunController
from decodescope.app.control.scoring import ScoreController
from decodescope.app.control.settings_controller import PresetLibrary, SettingsController
from decodescope.app.control.settings_watcher import SettingsChangeWatcher
from decodescope.app.control.word_spellings import WordSpellingsController
from decodescope.app.features.claims.controller import ClaimController
from decodescope.app.features.differences.controller import DifferenceController
from decodescope.app.features.downloads.controller.model_download import LazyDownloads, ModelDownload
from decodescope.app.features.guess.controller import GuessController
from decodescope.app.features.history.controller.history import History, Recovery
from decodescope.app.features.history.controller.history_panel import HistoryEdits, HistoryPanel
from decodescope.app.features.history.controller.run_navigation import RunNavigation, RunTreeController
from decodescope.app.features.labs.controller.lab_windows import LabJobs, LabWindows
from decodescope.app.features.likelihood.controller import LikelihoodController
from decodescope.app.features.live.controller import LiveRuns
from decodescope.app.features.media.controller.prompt_media import MediaBarController, MediaController
from decodescope.app.features.media.session.media_cache import MediaCache
from decodescope.app.features.palette.controller.palette import PaletteController
from decodescope.app.features.plugins.controller import PluginController
from decodescope.app.features.plugins.session import PluginJobs
from decodescope.app.features.presentation.controller.lazy_demo_recorder import LazyDemoRecorder
from decodescope.app.features.same_noise.controller import SameNoiseController
from decodescope.app.features.serving.controller import ServingController
from decodescope.app.features.studies.controller import StudyController, StudyWork
from decodescope.app.features.tours.controller.lessons import Lessons
from decodescope.app.features.tours.controller.tours import Tours
from decodescope.app.features.updates.controller import UpdateController
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.menu_bar import MenuBar
from decodescope.app.panels.setup_panel import SetupPanel
from decodescope.app.panels.status_line import StatusLine
from decodescope.app.panels.toolbar import Toolbar
from decodescope.app.panels.window_layout import SideSplitter
from decodescope.app.session.kernel_builder import KernelBuilder
from decodescope.app.session.session import Session
from decodescope.app.state.run_history import RunTrees
from decodescope.app.storage.chat_store import ChatStore
from decodescope.app.storage.settings import Settings
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.timeline import Timeline
from decodescope.app.window.actions import Actions
from decodescope.app.window.appearance import AppearanceController, LanguageSwitch
from decodescope.app.window.drag_and_drop import DropController
from decodescope.app.window.panel_layout import PanelLayout
from decodescope.app.window.presentation_mode import PresentationMode
from decodescope.app.window.run_feed import RunFeed
from decodescope.app.window.view_feed import ViewFeed


class AppServices(NamedTuple):
    """Non-visual objects that live as long as the window."""

    store: SettingsStore
    session: Session
    language_switch: LanguageSwitch
    settings_saver: SettingsSaver
    history: History
    run_navigation: RunNavigation
    chat_saver: ChatSaver
    family: RunTrees
    models: ModelList
    downloads: LazyDownloads
    media: MediaCache
    labs: LabJobs
    studies: StudyWork
    kernel_builder: KernelBuilder
    plugins: PluginJobs
    live: LiveRuns


def create_services(store: SettingsStore, session: Session, switch: LanguageSwitch) -> AppServices:
    """Create the services and restore the chat."""
    keeper = SettingsSaver(store)
    history = History(session, lambda: store.data_folder, store.settings.history, keeper)
    return AppServices(
        store=store,
        session=session,
        language_switch=switch,
        settings_saver=keeper,
        history=history,
        run_navigation=RunNavigation(session, history),
        chat_saver=ChatSaver(ChatStore(store.folder), keeper),
        family=RunTrees(),
        models=ModelList(),
        downloads=LazyDownloads(session),
        media=MediaCache(session),
        labs=LabJobs(lambda: store.data_folder),
        studies=StudyWork(lambda: store.data_folder),
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
    prompt_length: PromptLengthController
    model_task: ModelTaskController
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
    chats: ChatLibrary
    chat_fit: ChatFitController
    memory_fit: MemoryFitController
    word_spellings: WordSpellingsController
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
    lessons: Lessons
    guess: GuessController
    screen_reader_text: ScreenReaderText
    palette: PaletteController
    plugins: PluginController
    serving: ServingController
    same_noise: SameNoiseController
    likelihood: LikelihoodController
    claims: ClaimController
    studies: StudyController
    differences: DifferenceController
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
