"""Connects the views with the session in both directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, Slot

from decodescope.app.control.model_choice import ModelChoice
from decodescope.app.panels.centre import Centre
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.views.base import View
from decodescope.app.views.inspector.panel import Inspector
from decodescope.app.views.timeline import Timeline

if TYPE_CHECKING:
    from decodescope.app.features.media.session.media_cache import MediaCache
    from decodescope.app.state.layer_queries import InfluenceMap
    from decodescope.app.state.media import Medium
    from decodescope.core.events import Event

END_DELAY_MS = 60
"""Delay after a run's end before hidden views are updated, so that visible ones are drawn first."""


class ViewEventBuffer(QObject):
    """Delivers the session's run and events to `view`, buffered while it is hidden: drawing shares the interpreter lock
    with the model and would slow the run.
    """

    def __init__(self, view: View, session: Session) -> None:
        super().__init__(view)
        self._view = view
        self._run: Run | None = None
        self._events: list[Event] = []
        self._is_new, self._end_delivered = False, True
        """Whether the view must still be shown the new run, and whether it was notified of its end."""
        self._end_timer = QTimer(self, singleShot=True, interval=END_DELAY_MS)
        self._end_timer.timeout.connect(self.deliver)
        session.runStarted.connect(self.on_started)
        session.runShown.connect(self.on_shown)
        for signal in (session.cursorMoved, session.selectionChanged):
            signal.connect(self.deliver)
        session.eventsArrived.connect(self.on_events)
        view.signals.updateRequested.connect(self.deliver)
        view.installEventFilter(self)

    @Slot(object)
    def on_started(self, run: Run) -> None:
        """Start with a new run."""
        self._begin(run)
        self._deliver_if_visible()

    @Slot(object)
    def on_shown(self, run: Run) -> None:
        """Show an earlier run at once, as none is in progress."""
        self._begin(run)
        self.deliver()

    @Slot(object, object)
    def on_events(self, run: Run, events: Sequence[Event]) -> None:
        """Buffer the events; deliver them if the view is visible."""
        self._run = run
        self._events += events
        self._deliver_if_visible()

    @Slot()
    def deliver(self) -> None:
        """Deliver the buffered run and events, before other signals of that run."""
        self._end_timer.stop()
        run, events, is_new = self._run, self._events, self._is_new
        self._events, self._is_new = [], False
        if run is None:
            return
        if is_new:
            self._view.show_run(run)
        if events or (run.outcome is not None and not self._end_delivered):
            self._end_delivered = run.outcome is not None
            self._view.events_arrived(run, events)

    def finish(self, run: Run | None) -> None:
        """Notify the view that no more events follow, unless the last events did."""
        self._run = run
        if not self._deliver_if_visible():
            self._end_timer.start()

    def _begin(self, run: Run) -> None:
        """Reset the buffer for another run."""
        self._end_timer.stop()
        self._run, self._events, self._is_new, self._end_delivered = run, [], True, run.outcome is not None

    def _deliver_if_visible(self) -> bool:
        is_seen = self._view.isVisibleTo(self._view.window())
        if is_seen:
            self.deliver()
        return is_seen

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Deliver when the view is shown."""
        if event.type() == QEvent.Type.Show:
            self.deliver()
        return False


class ViewFeed(QObject):
    """Updates every view, including those of a second column.

    Requests of a view that the session does not handle are forwarded: `inspectorRequested`,
    `prefixSaveRequested(path)`, `prefixLoadRequested(path)`, `branchRequested(Replacement | Continuation)`,
    `samplesRequested(count)`, `fillRequested(what)`; `failed(ErrorReport)` if a comparison failed.
    """

    inspectorRequested = Signal()
    prefixSaveRequested = Signal(str)
    prefixLoadRequested = Signal(str)
    branchRequested = Signal(object)
    samplesRequested = Signal(int)
    fillRequested = Signal(str)
    failed = Signal(object)

    def __init__(self, session: Session, centre: Centre, inspector: Inspector, timeline: Timeline) -> None:
        super().__init__(centre)
        self._session, self._centre, self._inspector, self._timeline = session, centre, inspector, timeline
        self._models: ModelChoice | None = None
        self._media: MediaCache | None = None
        self._grammar: object = None
        self._buffers: dict[View, ViewEventBuffer] = {}
        for view in self._views():
            self.connect_view(view)
        centre.viewCreated.connect(self.connect_view)
        centre.viewShown.connect(self.on_view_shown)
        session.finished.connect(self.on_finished)
        session.runShown.connect(self.on_shown)
        session.measured.connect(self.on_measured)

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Connect a view with the session in both directions."""
        session = self._session
        self._buffers[view] = ViewEventBuffer(view, session)
        session.cursorMoved.connect(view.cursor_moved)
        session.selectionChanged.connect(view.selection_changed)
        self._connect_requests(view)
        self._connect_updates(view)
        view.show_run(session.run)

    def connect_models(self, models: ModelChoice) -> None:
        """Show the available models in the views, now and after changes."""
        self._models = models
        models.listed.connect(self.on_listed)
        self.on_listed()

    def connect_media(self, media: MediaCache) -> None:
        """Provide the media that the views request."""
        self._media = media
        media.mediumRead.connect(self.on_medium)

    @Slot(str)
    def on_medium_wanted(self, path: str) -> None:
        """Send a medium to the views if it is known, else once it has been read."""
        medium = self._media.get(path) if self._media is not None else None
        if medium is not None and medium.is_read:
            self.on_medium(medium)

    @Slot(object)
    def on_medium(self, medium: Medium) -> None:
        """Send a medium that was read to the views."""
        for view in self._views():
            view.medium_loaded(medium)

    @Slot()
    def on_listed(self) -> None:
        """Send the list of models to the views."""
        for view in self._views():
            if self._models is not None:
                view.models_changed(self._models.entries)

    @Slot()
    def on_wording_changed(self) -> None:
        """Update the texts of all views."""
        for view in self._views():
            view.wording_changed()
        self._inspector.show_report(self._centre.columns[0].current_view.report)

    @Slot(object)
    def on_influence(self, influence: InfluenceMap | None) -> None:
        """Show in every view which tokens influence a step."""
        for view in self._views():
            view.influence_changed(influence)

    @Slot(object)
    def on_grammar(self, grammar: object) -> None:
        """Set the grammar of new runs in every view."""
        self._grammar = grammar
        for view in self._views():
            view.grammar_changed(grammar)

    def _views(self) -> Iterator[View]:
        yield from self._centre.created_views
        yield self._inspector
        yield self._timeline

    def _connect_requests(self, view: View) -> None:
        """Connect the requests of a view."""
        session, signals = self._session, view.signals
        signals.tokenActivated.connect(session.select_token)
        signals.cursorRequested.connect(session.move_cursor)
        signals.sequenceActivated.connect(session.show_sequence)
        signals.sideRunsRequested.connect(session.measure)
        signals.stopRequested.connect(session.stop)
        signals.samplesRequested.connect(self.on_samples)
        signals.runActivated.connect(session.show)
        signals.reportSelected.connect(self._inspector.show_report)
        signals.inspectorRequested.connect(self.inspectorRequested)
        signals.prefixSaveRequested.connect(self.prefixSaveRequested)
        signals.prefixLoadRequested.connect(self.prefixLoadRequested)
        signals.branchRequested.connect(self.branchRequested)
        signals.fillRequested.connect(self.fillRequested)
        signals.mediumRequested.connect(self.on_medium_wanted)
        signals.wordInputRequested.connect(self._inspector.focus_branch_field)

    def _connect_updates(self, view: View) -> None:
        """Connect a view to the signals on models and measurements."""
        session = self._session
        session.measured.connect(view.side_run_finished)
        session.measuringChanged.connect(view.side_runs_changed)
        session.measuringProgressed.connect(view.side_runs_progressed)
        session.modelReady.connect(view.model_ready)
        view.grammar_changed(self._grammar)
        if session.model is not None:
            view.model_ready(session.model)
        if self._models is not None:
            view.models_changed(self._models.entries)

    @Slot(int)
    def on_samples(self, count: int) -> None:
        """Show the tree view and generate samples."""
        self._centre.show_view("tree")
        self.samplesRequested.emit(count)

    @Slot(object)
    def compare_with(self, run: Run) -> None:
        """Compare a saved run with the shown one in the comparison view."""
        self._centre.show_view("compare")
        for view in self._centre.created_views:
            view.compare_with(run)

    @Slot(object)
    def on_view_shown(self, view: View) -> None:
        """Show the selection of this view in the inspector."""
        self._inspector.show_report(view.report)

    @Slot(object)
    def on_finished(self, _outcome: object) -> None:
        """Notify the views that no more events follow."""
        for view in self._views():
            self._buffers[view].finish(self._session.run)

    @Slot(object)
    def on_shown(self, _run: Run) -> None:
        """Reset the inspector for another run."""
        self._inspector.show_report(self._centre.columns[0].current_view.report)

    @Slot(object)
    def on_measured(self, run: Run) -> None:
        """Show the result or the error of a comparison."""
        compared = any(view.shows_side_runs for view in self._centre.created_views)
        if run.outcome is not None and run.outcome.error is not None and not compared:
            self.failed.emit(run.outcome.error)
