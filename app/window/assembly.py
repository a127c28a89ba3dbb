"""Builds the parts of the main window, lays them out and connects them with the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.control.chat import ChatDesk
from app.control.library import Files
from app.control.memory_fit import FitDesk
from app.control.messages import Messages
from app.control.prefixes import PrefixDesk
from app.control.setup import Desk
from app.panels.centre import Centre
from app.panels.setup import SetupPanel
from app.panels.shortcuts import MOST_VIEW_KEYS, SHORTCUTS
from app.panels.side_splitter import SideSplitter
from app.panels.status_line import StatusLine
from app.panels.toolbar import Toolbar
from app.session.session import Session
from app.state.run import Run
from app.storage import examples
from app.views import VIEWS
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline
from app.window.appearance import Looks
from core import strategies

if TYPE_CHECKING:
    from app.session.engine import Engine
    from app.window.main_window import MainWindow


def furnish(window: MainWindow, engine: Engine | None) -> None:
    """Give the window its parts, in the order they need each other."""
    window.session = Session(engine, window)
    _build(window)
    window.desk = Desk(window.toolbar, window.setup, window.settings, window.session)
    window.messages = Messages(window)
    window.looks = Looks(window)
    window.files = Files(window)
    window.feed = ViewFeed(window)
    window.chat = ChatDesk(window)
    PrefixDesk(window)
    FitDesk(window)
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
        self._window, self._session = window, window.session
        for view in (*window.centre.views, window.inspector, window.timeline):
            self.connect_view(view)
        window.centre.viewAdded.connect(self.connect_view)
        window.centre.viewShown.connect(self.on_view_shown)
        window.session.finished.connect(self.on_finished)
        window.session.measured.connect(self.on_measured)

    @Slot(object)
    def connect_view(self, view: Any) -> None:
        """Feed a view from the session, and obey what the reader does in it."""
        session = self._session
        session.runStarted.connect(view.show_run)
        session.eventsArrived.connect(view.events_arrived)
        session.cursorMoved.connect(view.cursor_moved)
        session.selectionChanged.connect(view.selection_changed)
        self._obey(view)
        self._tell(view)
        view.show_run(session.run)

    def _obey(self, view: Any) -> None:
        """Do what the reader asks for in a view, as far as it has such signals."""
        session, window = self._session, self._window
        for name, slot in (
            ("tokenActivated", session.select_token),
            ("cursorRequested", session.move_cursor),
            ("sequenceActivated", session.show_sequence),
            ("reportSelected", window.inspector.show_report),
            ("inspectorRequested", window.looks.show_inspector),
            ("measureWanted", session.measure),
        ):
            if hasattr(view, name):
                getattr(view, name).connect(slot)

    def _tell(self, view: Any) -> None:
        """Let a view know of models and measurements, as far as it listens."""
        session = self._session
        for signal, name in (
            (session.measured, "measured"),
            (session.measuringChanged, "measuring_changed"),
            (session.modelReady, "model_ready"),
        ):
            if hasattr(view, name):
                signal.connect(getattr(view, name))
        if session.model is not None and hasattr(view, "model_ready"):
            view.model_ready(session.model)

    @Slot(object)
    def on_view_shown(self, view: Any) -> None:
        """The inspector speaks of what this view has picked, or of tokens."""
        self._window.inspector.show_report(getattr(view, "report", None))

    @Slot(object)
    def on_finished(self, _outcome: object) -> None:
        """Views learn that no more events come, however the run ended."""
        run = self._session.run
        for view in (*self._window.centre.views, self._window.inspector, self._window.timeline):
            if run is not None:
                view.events_arrived(run, ())

    @Slot(object)
    def on_measured(self, run: Run) -> None:
        """Show what a comparison found, or why it found nothing."""
        compared = any(getattr(view, "is_comparing", False) for view in self._window.centre.views)
        if run.outcome is not None and run.outcome.error is not None and not compared:
            self._window.messages.show_error(run.outcome.error)
