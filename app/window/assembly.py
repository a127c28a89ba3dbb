"""Builds the parts of the main window, lays them out and connects them with the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.control.chat import ChatController
from app.control.library import Library
from app.control.memory_fit import FitController
from app.control.messages import Messages
from app.control.prefixes import PrefixController
from app.control.setup import SetupController
from app.panels.centre import Centre
from app.panels.setup import SetupPanel
from app.panels.shortcuts import MOST_VIEW_KEYS, SHORTCUTS
from app.panels.side_splitter import SideSplitter
from app.panels.status_line import StatusLine
from app.panels.toolbar import Toolbar
from app.session.session import Session
from app.storage import examples
from app.views import VIEWS
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline
from app.window.appearance import Appearance
from app.window.parts import Parts
from app.window.view_feed import ViewFeed
from core import strategies

if TYPE_CHECKING:
    from app.session.engine import Engine
    from app.window.main_window import MainWindow


def assemble(window: MainWindow, engine: Engine | None) -> None:
    """Give the window its parts, in the order they need each other."""
    window.session = Session(engine, window)
    _build(window)
    window.controller = SetupController(window.toolbar, window.setup, window.settings, window.session)
    window.messages = Messages(window)
    window.appearance = Appearance(window)
    window.library = Library(window)
    window.feed = ViewFeed(window)
    window.chat = ChatController(window)
    PrefixController(window)
    FitController(window)
    _connect(window)
    _bind_keys(window)
    window.appearance.apply()
    window.appearance.restore()
    window.parts = Parts(
        store=window.store,
        settings=window.settings,
        session=window.session,
        toolbar=window.toolbar,
        setup=window.setup,
        centre=window.centre,
        inspector=window.inspector,
        timeline=window.timeline,
        status=window.status,
        splitter=window.splitter,
        controller=window.controller,
        appearance=window.appearance,
        library=window.library,
        messages=window.messages,
        chat=window.chat,
    )
    window.setup.prompt.editor.setFocus()


def _build(window: MainWindow) -> None:
    window.toolbar = Toolbar()
    window.setup = SetupPanel(examples.load(known_strategies=("", *strategies.registry)))
    window.centre = Centre(VIEWS)
    window.inspector = Inspector()
    window.timeline = Timeline()
    window.status = StatusLine()
    window.splitter = SideSplitter(window.setup, window.centre, window.inspector)
    body = QWidget()
    column = QVBoxLayout(body)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    column.addWidget(window.toolbar)
    column.addWidget(window.splitter, 1)
    column.addWidget(window.timeline)
    column.addWidget(window.status)
    window.setCentralWidget(body)


def _connect(window: MainWindow) -> None:
    session, controller = window.session, window.controller
    for signal, slot in (
        (session.runStarted, window.on_run_started),
        (session.eventsArrived, window.on_events),
        (session.cursorMoved, window.centre.show_texts),
        (session.finished, window.on_finished),
        (session.stateChanged, window.on_state),
        (session.modelLoading, window.status.show_loading),
        (session.modelLoading, controller.on_loading),
        (session.modelReady, window.status.show_model),
        (session.modelReady, controller.on_ready),
        (session.failed, window.on_failed),
        (session.failed, controller.on_failed),
        (controller.notice, window.messages.show_notice),
        (window.toolbar.run.clicked, window.run_or_stop),
        (window.centre.sequenceWanted, session.show_sequence),
        (window.status.settingsWanted, window.open_used_settings),
    ):
        signal.connect(slot)


def _bind_keys(window: MainWindow) -> None:
    for shortcut in SHORTCUTS:
        for key in shortcut.keys if shortcut.action else ():
            bound = QShortcut(QKeySequence(key), window, objectName=shortcut.action)
            bound.activated.connect(window.do_shortcut)
    for number in range(MOST_VIEW_KEYS):
        bound = QShortcut(QKeySequence(f"Ctrl+{number + 1}"), window)
        bound.setProperty("number", number)
        bound.activated.connect(window.show_numbered_view)
