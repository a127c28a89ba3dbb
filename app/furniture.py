"""Builds the parts of the main window, lays them out and connects them with the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from app import examples
from app.desk import Desk
from app.files import Files
from app.looks import Looks
from app.messages import Messages
from app.panels.centre import Centre
from app.panels.setup import SetupPanel
from app.panels.status_line import StatusLine
from app.panels.toolbar import Toolbar
from app.session import Session
from app.shortcuts import MOST_VIEW_KEYS, SHORTCUTS
from app.views import VIEWS
from app.views.inspector import Inspector
from app.views.timeline import Timeline
from core import strategies

if TYPE_CHECKING:
    from app.engine import Engine
    from app.main_window import MainWindow


def furnish(window: MainWindow, engine: Engine | None) -> None:
    """Give the window its parts, in the order they need each other."""
    window.session = Session(engine, window)
    _build(window)
    window.desk = Desk(window.toolbar, window.setup, window.settings, window.session)
    window.messages = Messages(window)
    window.looks = Looks(window)
    window.files = Files(window)
    window.feed = ViewFeed(window)
    _connect(window)
    _bind_keys(window)
    window.looks.apply()
    window.looks.restore()
    window.setup.prompt.editor.setFocus()


def _build(window: MainWindow) -> None:
    window.toolbar = Toolbar()
    window.setup = SetupPanel(examples.load(known_strategies=("", *strategies.registry)))
    window.centre = Centre(VIEWS)
    window.inspector = Inspector()
    window.timeline = Timeline()
    window.status = StatusLine()
    window.splitter = QSplitter(Qt.Orientation.Horizontal, childrenCollapsible=False, handleWidth=1)
    for part in (window.setup, window.centre, window.inspector):
        window.splitter.addWidget(part)
    window.splitter.setStretchFactor(1, 1)
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
    session, desk = window.session, window.desk
    for signal, slot in (
        (session.runStarted, window.on_run_started),
        (session.eventsArrived, window.on_events),
        (session.cursorMoved, window.centre.show_texts),
        (session.finished, window.on_finished),
        (session.stateChanged, window.on_state),
        (session.modelLoading, window.status.show_loading),
        (session.modelLoading, desk.on_loading),
        (session.modelReady, window.status.show_model),
        (session.modelReady, desk.on_ready),
        (session.failed, window.on_failed),
        (session.failed, desk.on_failed),
        (desk.notice, window.messages.show_notice),
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


class ViewFeed(QObject):
    """Connects every view, those of a later second column too, with the session."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._session = window.session
        for view in (*window.centre.views, window.inspector, window.timeline):
            self.connect_view(view)
        window.centre.viewAdded.connect(self.connect_view)

    @Slot(object)
    def connect_view(self, view: Any) -> None:
        """Feed a view from the session, and obey what the reader does in it."""
        session = self._session
        session.runStarted.connect(view.show_run)
        session.eventsArrived.connect(view.events_arrived)
        session.cursorMoved.connect(view.cursor_moved)
        session.selectionChanged.connect(view.selection_changed)
        for name, slot in (
            ("tokenActivated", session.select_token),
            ("cursorRequested", session.move_cursor),
            ("sequenceActivated", session.show_sequence),
        ):
            if hasattr(view, name):
                getattr(view, name).connect(slot)
        view.show_run(session.run)
