"""Connects the views with the session: what comes in, and what the reader asks for in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, Slot

from app.control.model_choice import ModelChoice
from app.panels.centre import Centre
from app.session.session import Session
from app.state.run import Run
from app.views.base import View
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline

if TYPE_CHECKING:
    from app.session.media_cache import MediaCache
    from app.state.layer_queries import InfluenceMap
    from app.state.media import Medium
    from core.events import Event

END_DELAY_MS = 60
"""After a run's end: what is in sight is drawn before views that nobody sees catch up."""


class ViewEventBuffer(QObject):
    """Hands `view` the session's run and its events. Drawing and the model share the interpreter's lock: what a page
    in the background would do with each run and batch is time that the text waits for."""

    def __init__(self, view: View, session: Session) -> None:
        super().__init__(view)
        self._view = view
        self._run: Run | None = None
        self._events: list[Event] = []
        self._is_new, self._end_delivered = False, True
        """Whether the view has still to learn that this is another run, and whether it knows how that ended."""
        self._end_timer = QTimer(self, singleShot=True, interval=END_DELAY_MS)
        self._end_timer.timeout.connect(self.deliver)
        session.runStarted.connect(self.on_started)
        session.runShown.connect(self.on_shown)
        for signal in (session.cursorMoved, session.selectionChanged):
            signal.connect(self.deliver)
        session.eventsArrived.connect(self.on_events)
        view.installEventFilter(self)

    @Slot(object)
    def on_started(self, run: Run) -> None:
        """A run has begun."""
        self._begin(run)
        self._deliver_if_visible()

    @Slot(object)
    def on_shown(self, run: Run) -> None:
        """A run that ended earlier is shown: nothing is under way that would have to wait."""
        self._begin(run)
        self.deliver()

    @Slot(object, object)
    def on_events(self, run: Run, events: Sequence[Event]) -> None:
        """Now, or when the view is seen."""
        self._run = run
        self._events += events
        self._deliver_if_visible()

    @Slot()
    def deliver(self) -> None:
        """What came while the view was out of sight: before anything else is said of that run."""
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
        """No more events come; a view that has learnt so with the last of them is told nothing."""
        self._run = run
        if not self._deliver_if_visible():
            self._end_timer.start()

    def _begin(self, run: Run) -> None:
        """Another run is shown, from its beginning."""
        self._end_timer.stop()
        self._run, self._events, self._is_new, self._end_delivered = run, [], True, run.outcome is not None

    def _deliver_if_visible(self) -> bool:
        is_seen = self._view.isVisibleTo(self._view.window())
        if is_seen:
            self.deliver()
        return is_seen

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The view comes into sight."""
        if event.type() == QEvent.Type.Show:
            self.deliver()
        return False


class ViewFeed(QObject):
    """Feeds every view, those of a later second column too.

    What a view asks for that is not the session's to do is passed on: `inspectorRequested`, `prefixSaveRequested(path)`,
    `prefixLoadRequested(path)`, `branchRequested(Instead)`, `samplesRequested(count)`,
    `fillRequested(what)`; `failed(ErrorReport)` when a comparison found nothing.
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
        """Feed a view from the session, and obey what the reader does in it."""
        session = self._session
        self._buffers[view] = ViewEventBuffer(view, session)
        session.cursorMoved.connect(view.cursor_moved)
        session.selectionChanged.connect(view.selection_changed)
        self._connect_requests(view)
        self._connect_updates(view)
        view.show_run(session.run)

    def connect_models(self, models: ModelChoice) -> None:
        """Let the views know which models can be chosen, now and when there are more."""
        self._models = models
        models.listed.connect(self.on_listed)
        self.on_listed()

    def connect_media(self, media: MediaCache) -> None:
        """Let the views see the sounds and pictures that they ask for."""
        self._media = media
        media.mediumRead.connect(self.on_medium)

    @Slot(str)
    def on_medium_wanted(self, path: str) -> None:
        """Tell of it now where it is known, else once it has been read."""
        medium = self._media.get(path) if self._media is not None else None
        if medium is not None and medium.is_read:
            self.on_medium(medium)

    @Slot(object)
    def on_medium(self, medium: Medium) -> None:
        """A file has been read."""
        for view in self._views():
            view.medium_loaded(medium)

    @Slot()
    def on_listed(self) -> None:
        """There are other models to choose from."""
        for view in self._views():
            if self._models is not None:
                view.models_changed(self._models.entries)

    @Slot()
    def on_words_changed(self) -> None:
        """Every view says again what it shows."""
        for view in self._views():
            view.wording_changed()
        self._inspector.show_report(self._centre.columns[0].current_view.report)

    @Slot(object)
    def on_influence(self, influence: InfluenceMap | None) -> None:
        """Every view draws what a step hangs on, where it draws the text."""
        for view in self._views():
            view.influence_changed(influence)

    @Slot(object)
    def on_grammar(self, grammar: object) -> None:
        """Every view offers what a run that is held to it can begin with."""
        self._grammar = grammar
        for view in self._views():
            view.grammar_changed(grammar)

    def _views(self) -> Iterator[View]:
        yield from self._centre.created_views
        yield self._inspector
        yield self._timeline

    def _connect_requests(self, view: View) -> None:
        """Do what the reader asks for in a view."""
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
        """Let a view know of models and measurements."""
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
        """Its tree is to be seen while it grows."""
        self._centre.show_view("tree")
        self.samplesRequested.emit(count)

    @Slot(object)
    def compare_with(self, run: Run) -> None:
        """Hold a kept run beside the shown one, in the view for that."""
        self._centre.show_view("compare")
        for view in self._centre.created_views:
            view.compare_with(run)

    @Slot(object)
    def on_view_shown(self, view: View) -> None:
        """The inspector speaks of what this view has picked, or of tokens."""
        self._inspector.show_report(view.report)

    @Slot(object)
    def on_finished(self, _outcome: object) -> None:
        """Views learn that no more events come, however the run ended."""
        for view in self._views():
            self._buffers[view].finish(self._session.run)

    @Slot(object)
    def on_shown(self, _run: Run) -> None:
        """What the inspector said belonged to another run."""
        self._inspector.show_report(self._centre.columns[0].current_view.report)

    @Slot(object)
    def on_measured(self, run: Run) -> None:
        """Show what a comparison found, or why it found nothing."""
        compared = any(view.shows_side_runs for view in self._centre.created_views)
        if run.outcome is not None and run.outcome.error is not None and not compared:
            self.failed.emit(run.outcome.error)
