"""The parts of an assembled window, for those who drive it from outside: the command line and the tests."""

from __future__ import annotations

from dataclasses import dataclass

from app.control.chat import ChatController
from app.control.library import Library
from app.control.messages import Messages
from app.control.setup import SetupController
from app.panels.centre import Centre
from app.panels.setup import SetupPanel
from app.panels.side_splitter import SideSplitter
from app.panels.status_line import StatusLine
from app.panels.toolbar import Toolbar
from app.session.session import Session
from app.storage.settings import Settings
from app.storage.settings_file import SettingsStore
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline
from app.window.appearance import Appearance


@dataclass(frozen=True, slots=True)
class Parts:
    """Made by the assembly, in the order they need each other; no part is handed this."""

    store: SettingsStore
    settings: Settings
    session: Session
    toolbar: Toolbar
    setup: SetupPanel
    centre: Centre
    inspector: Inspector
    timeline: Timeline
    status: StatusLine
    splitter: SideSplitter
    controller: SetupController
    appearance: Appearance
    library: Library
    messages: Messages
    chat: ChatController
