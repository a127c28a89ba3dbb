"""Connects the views with the session: what comes in, and what the reader asks for in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.state.run import Run
from app.views.base import View

if TYPE_CHECKING:
    from app.window.main_window import MainWindow


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
    def connect_view(self, view: View) -> None:
        """Feed a view from the session, and obey what the reader does in it."""
        session = self._session
        session.runStarted.connect(view.show_run)
        session.eventsArrived.connect(view.events_arrived)
        session.cursorMoved.connect(view.cursor_moved)
        session.selectionChanged.connect(view.selection_changed)
        self._obey(view)
        self._tell(view)
        view.show_run(session.run)

    def _obey(self, view: View) -> None:
        """Do what the reader asks for in a view."""
        session, window, signals = self._session, self._window, view.signals
        signals.tokenActivated.connect(session.select_token)
        signals.cursorRequested.connect(session.move_cursor)
        signals.sequenceActivated.connect(session.show_sequence)
        signals.measureWanted.connect(session.measure)
        signals.reportSelected.connect(window.inspector.show_report)
        signals.inspectorRequested.connect(window.appearance.show_inspector)

    def _tell(self, view: View) -> None:
        """Let a view know of models and measurements."""
        session = self._session
        session.measured.connect(view.measured)
        session.measuringChanged.connect(view.measuring_changed)
        session.modelReady.connect(view.model_ready)
        if session.model is not None:
            view.model_ready(session.model)

    @Slot(object)
    def on_view_shown(self, view: View) -> None:
        """The inspector speaks of what this view has picked, or of tokens."""
        self._window.inspector.show_report(view.report)

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
        compared = any(view.is_comparing for view in self._window.centre.views)
        if run.outcome is not None and run.outcome.error is not None and not compared:
            self._window.messages.show_error(run.outcome.error)
