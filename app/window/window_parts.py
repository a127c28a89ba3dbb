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
from app.control.glossary_terms import Terms
from app.control.guess import GuessController
from app.control.history import History
from app.control.history_edits import KeptChanges
from app.control.history_panel import HistoryPanel
from app.control.labs.lab_windows import Labs
from app.control.live_text import LiveText
from app.control.media import MediaController
from app.control.media_bar import MediaBarController
from app.control.memory_fit import FitController
from app.control.messages import Messages
from app.control.model_download import ModelDownload
from app.control.model_folders import ModelFolders
from app.control.model_loading import LoadController
from app.control.palette.controller import Palette
from app.control.persistence import SettingsSaver
from app.control.prefix_marks import ReuseMarks
from app.control.prefixes import PrefixController
from app.control.preset_library import PresetLibrary
from app.control.recorded_runs import RecordedRuns
from app.control.recovery import Recovery
from app.control.requests import ChosenSettings, RequestBuilder
from app.control.run_control import RunController
from app.control.run_navigation import RunNavigation
from app.control.run_tree import FamilyController
from app.control.scoring import ScoreController
from app.control.script_window import CodeController
from app.control.setting_changes import ChangeWatch
from app.control.settings_setup import SetupController
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
from app.session.session import Session
from app.storage.settings import Settings
from app.storage.settings_file import SettingsStore
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline
from app.window.actions import Actions
from app.window.appearance import Appearance
from app.window.panel_layout import PanelLayout
from app.window.presentation_mode import PresentationMode
from app.window.run_feed import RunFeed
from app.window.services import AppServices
from app.window.view_feed import ViewFeed


@dataclass_transform(kw_only_default=True, eq_default=False)
class _Group:
    """Parts by name. A dataclass to who checks types; the methods of real ones take a while to make at each start."""

    def __init__(self, **parts: object) -> None:
        vars(self).update(parts)


class Panels(_Group):
    """What is to be seen."""

    toolbar: Toolbar
    setup: SetupPanel
    centre: Centre
    inspector: Inspector
    timeline: Timeline
    status: StatusLine
    splitter: SideSplitter


class Keeping(_Group):
    """What keeps runs and settings, and brings them back."""

    keeper: SettingsSaver
    history: History
    kept_changes: KeptChanges
    history_panel: HistoryPanel
    recovery: Recovery
    steps: RunNavigation


class Taking(_Group):
    """What takes along what is seen, as files or by the clipboard."""

    recorded: RecordedRuns
    export: ExportController
    copying: CopyController
    code: CodeController
    demos: Demos


class Fetching(_Group):
    """What brings in presets and models."""

    library: PresetLibrary
    folders: ModelFolders
    getting: ModelDownload


class Controllers(Keeping, Taking, Fetching):
    """What acts on it."""

    chosen: ChosenSettings
    borrowed: BorrowedSettings
    loading: LoadController
    requests: RequestBuilder
    runs: RunController
    scoring: ScoreController
    weights: WeightsController
    family: FamilyController
    reuse: ReuseMarks
    controller: SetupController
    media: MediaController
    media_bar: MediaBarController
    chat: ChatController
    fit: FitController
    prefixes: PrefixController
    labs: Labs
    messages: Messages
    dialogs: Dialogs
    dropping: DropController
    diagnostics: Diagnostics
    terms: Terms
    changes: ChangeWatch
    cues: CueController
    tours: Tours
    guess: GuessController
    live_text: LiveText
    palette: Palette
    welcome: Welcome
    filling: EmptyViewAction


class WindowParts(Panels, Controllers):
    """Everything, by one name each. No part is handed this: each gets the few that it works on."""

    lasting: AppServices
    session: Session
    settings: Settings
    store: SettingsStore
    menu_bar: MenuBar
    appearance: Appearance
    layout: PanelLayout
    run_feed: RunFeed
    view_feed: ViewFeed
    stage: PresentationMode
    actions: Actions
