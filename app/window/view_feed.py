"""Connects the views with the session: what comes in, and what the reader asks for in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.control.model_choice import ModelChoice
from app.panels.centre import Centre
from app.session.session import Session
from app.state.run import Run
from app.views.base import View
from app.views.inspector.panel import Inspector
from app.views.timeline import Timeline
from app.window.view_event_buffer import ViewEventBuffer

if TYPE_CHECKING:
    from app.session.media_cache import MediaCache
    from app.state.layer_queries import Influence
    from app.state.media import Medium


class ViewFeed(QObject):
    """Feeds every view, those of a later second column too.

    What a view asks for that is not the session's to do is passed on: `inspectorRequested`, `prefixSaveWanted(path)`,
    `prefixLoadWanted(path)`, `branchWanted(Instead)`, `chorusWanted(count)`,
    `fillWanted(what)`; `failed(ErrorReport)` when a comparison found nothing.
    """

    inspectorRequested = Signal()
    prefixSaveWanted = Signal(str)
    prefixLoadWanted = Signal(str)
    branchWanted = Signal(object)
    chorusWanted = Signal(int)
    fillWanted = Signal(str)
    failed = Signal(object)

    def __init__(self, session: Session, centre: Centre, inspector: Inspector, timeline: Timeline) -> None:
        super().__init__(centre)
        self._session, self._centre, self._inspector, self._timeline = session, centre, inspector, timeline
        self._models: ModelChoice | None = None
        self._shelf: MediaCache | None = None
        self._grammar: object = None
        self._in_sight: dict[View, ViewEventBuffer] = {}
        for view in self._views():
            self.connect_view(view)
        centre.viewAdded.connect(self.connect_view)
        centre.viewShown.connect(self.on_view_shown)
        session.finished.connect(self.on_finished)
        session.runShown.connect(self.on_shown)
        session.measured.connect(self.on_measured)

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Feed a view from the session, and obey what the reader does in it."""
        session = self._session
        self._in_sight[view] = ViewEventBuffer(view, session)
        session.cursorMoved.connect(view.cursor_moved)
        session.selectionChanged.connect(view.selection_changed)
        self._obey(view)
        self._tell(view)
        view.show_run(session.run)

    def follow_models(self, models: ModelChoice) -> None:
        """Let the views know which models can be chosen, now and when there are more."""
        self._models = models
        models.listed.connect(self.on_listed)
        self.on_listed()

    def follow_media(self, shelf: MediaCache) -> None:
        """Let the views see the sounds and pictures that they ask for."""
        self._shelf = shelf
        shelf.known.connect(self.on_medium)

    @Slot(str)
    def on_medium_wanted(self, path: str) -> None:
        """Tell of it now where it is known, else once it has been read."""
        medium = self._shelf.of(path) if self._shelf is not None else None
        if medium is not None and medium.is_known:
            self.on_medium(medium)

    @Slot(object)
    def on_medium(self, medium: Medium) -> None:
        """A file has been read."""
        for view in self._views():
            view.medium_known(medium)

    @Slot()
    def on_listed(self) -> None:
        """There are other models to choose from."""
        for view in self._views():
            if self._models is not None:
                view.models_listed(self._models.entries)

    @Slot()
    def on_words_changed(self) -> None:
        """Every view says again what it shows."""
        for view in self._views():
            view.words_changed()
        self._inspector.show_report(self._centre.columns[0].shown.report)

    @Slot(object)
    def on_influence(self, influence: Influence | None) -> None:
        """Every view draws what a step hangs on, where it draws the text."""
        for view in self._views():
            view.influence_changed(influence)

    @Slot(object)
    def on_grammar(self, grammar: object) -> None:
        """Every view offers what a run that is held to it can begin with."""
        self._grammar = grammar
        for view in self._views():
            view.grammar_set(grammar)

    def _views(self) -> Iterator[View]:
        yield from self._centre.made
        yield self._inspector
        yield self._timeline

    def _obey(self, view: View) -> None:
        """Do what the reader asks for in a view."""
        session, signals = self._session, view.signals
        signals.tokenActivated.connect(session.select_token)
        signals.cursorRequested.connect(session.move_cursor)
        signals.sequenceActivated.connect(session.show_sequence)
        signals.measureWanted.connect(session.measure)
        signals.stopWanted.connect(session.stop)
        signals.chorusWanted.connect(self.on_chorus)
        signals.runWanted.connect(session.show)
        signals.reportSelected.connect(self._inspector.show_report)
        signals.inspectorRequested.connect(self.inspectorRequested)
        signals.prefixSaveWanted.connect(self.prefixSaveWanted)
        signals.prefixLoadWanted.connect(self.prefixLoadWanted)
        signals.branchWanted.connect(self.branchWanted)
        signals.fillWanted.connect(self.fillWanted)
        signals.mediumWanted.connect(self.on_medium_wanted)
        signals.wordsWanted.connect(self._inspector.type_words)

    def _tell(self, view: View) -> None:
        """Let a view know of models and measurements."""
        session = self._session
        session.measured.connect(view.measured)
        session.measuringChanged.connect(view.measuring_changed)
        session.measuringProgressed.connect(view.measuring_progressed)
        session.modelReady.connect(view.model_ready)
        view.grammar_set(self._grammar)
        if session.model is not None:
            view.model_ready(session.model)
        if self._models is not None:
            view.models_listed(self._models.entries)

    @Slot(int)
    def on_chorus(self, count: int) -> None:
        """Its tree is to be seen while it grows."""
        self._centre.show_view("tree")
        self.chorusWanted.emit(count)

    @Slot(object)
    def compare_with(self, run: Run) -> None:
        """Hold a kept run beside the shown one, in the view for that."""
        self._centre.show_view("compare")
        for view in self._centre.made:
            view.compare_with(run)

    @Slot(object)
    def on_view_shown(self, view: View) -> None:
        """The inspector speaks of what this view has picked, or of tokens."""
        self._inspector.show_report(view.report)

    @Slot(object)
    def on_finished(self, _outcome: object) -> None:
        """Views learn that no more events come, however the run ended."""
        for view in self._views():
            self._in_sight[view].end(self._session.run)

    @Slot(object)
    def on_shown(self, _run: Run) -> None:
        """What the inspector said belonged to another run."""
        self._inspector.show_report(self._centre.columns[0].shown.report)

    @Slot(object)
    def on_measured(self, run: Run) -> None:
        """Show what a comparison found, or why it found nothing."""
        compared = any(view.is_comparing for view in self._centre.made)
        if run.outcome is not None and run.outcome.error is not None and not compared:
            self.failed.emit(run.outcome.error)
