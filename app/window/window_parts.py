"""The parts of an assembled window, for those who drive it from outside: the command line and the tests."""

from __future__ import annotations

from typing import dataclass_transform

from app.control.borrowed_settings import BorrowedSettings
from app.control.chat import ChatController
from app.control.clipboard import CopyController
from app.control.diagnostics import Diagnostics
from app.control.dialogs import Dialogs
from app.control.dropping import DropController
from app.control.empty_view_action import EmptyViewAction
from app.control.export import ExportController
from app.control.glossary_terms import GlossaryController
from app.control.guess import GuessController
from app.control.history import History
from app.control.history_edits import HistoryEdits
from app.control.history_panel import HistoryPanel
from app.control.labs.lab_windows import LabWindows
from app.control.live_text import ScreenReaderText
from app.control.media import MediaController
from app.control.media_bar import MediaBarController
from app.control.memory_fit import MemoryFitController
from app.control.messages import Messages
from app.control.model_download import ModelDownload
from app.control.model_folders import ModelFolders
from app.control.model_loading import ModelLoadController
from app.control.palette.controller import PaletteController
from app.control.persistence import SettingsSaver
from app.control.prefix_marks import ReuseMarks
from app.control.prefixes import PrefixController
from app.control.preset_library import PresetLibrary
from app.control.recorded_runs import RecordedRuns
from app.control.recovery import Recovery
from app.control.requests import ChosenSettings, RequestBuilder
from app.control.run_control import RunController
from app.control.run_navigation import RunNavigation
from app.control.run_tree import RunTreeController
from app.control.scoring import ScoreController
from app.control.script_window import CodeController
from app.control.setting_changes import SettingsChangeWatcher
from app.control.settings_setup import SettingsController
from app.control.sound_effects import SoundEffectController
from app.control.stage.demos import LazyDemoRecorder
from app.control.tours.tours import Tours
from app.control.weights import WeightsController
from app.control.welcome import WelcomeController
from app.panels.centre import Centre
from app.panels.menu_bar import MenuBar
from app.panels.setup import SetupPanel
from app.panels.side_splitter import SideSplitter
from app.panels.status_line import StatusLine
from app.panels.toolbar import Toolbar
from app.session.session import Session
from app.storage.settings import Settings
from app.storage.settings_file import SettingsStore
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline
from app.window.actions import Actions
from app.window.appearance import AppearanceController
from app.window.panel_layout import PanelLayout
from app.window.presentation_mode import PresentationMode
from app.window.run_feed import RunFeed
from app.window.services import AppServices
from app.window.view_feed import ViewFeed


@dataclass_transform(kw_only_default=True, eq_default=False)
class _PartGroup:
    """Parts by name. A dataclass to who checks types; the methods of real ones take a while to make at each start."""

    def __init__(self, **parts: object) -> None:
        vars(self).update(parts)


class Panels(_PartGroup):
    """What is to be seen."""

    toolbar: Toolbar
    setup: SetupPanel
    centre: Centre
    inspector: Inspector
    timeline: Timeline
    status: StatusLine
    splitter: SideSplitter


class HistoryParts(_PartGroup):
    """What keeps runs and settings, and brings them back."""

    settings_saver: SettingsSaver
    history: History
    history_edits: HistoryEdits
    history_panel: HistoryPanel
    recovery: Recovery
    run_navigation: RunNavigation


class ExportParts(_PartGroup):
    """What takes along what is seen, as files or by the clipboard."""

    recorded_runs: RecordedRuns
    export: ExportController
    clipboard: CopyController
    code: CodeController
    demos: LazyDemoRecorder


class ImportParts(_PartGroup):
    """What brings in presets and models."""

    presets: PresetLibrary
    folders: ModelFolders
    model_download: ModelDownload


class Controllers(HistoryParts, ExportParts, ImportParts):
    """What acts on it."""

    chosen: ChosenSettings
    borrowed: BorrowedSettings
    loading: ModelLoadController
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
    prefixes: PrefixController
    labs: LabWindows
    messages: Messages
    dialogs: Dialogs
    dropping: DropController
    diagnostics: Diagnostics
    glossary: GlossaryController
    changes: SettingsChangeWatcher
    sounds: SoundEffectController
    tours: Tours
    guess: GuessController
    screen_reader_text: ScreenReaderText
    palette: PaletteController
    welcome: WelcomeController
    empty_view_action: EmptyViewAction


class WindowParts(Panels, Controllers):
    """Everything, by one name each. No part is handed this: each gets the few that it works on."""

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
