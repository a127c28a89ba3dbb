"""Navigation through the runs of a window with Ctrl+Z and Ctrl+Y, continuing into the saved history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.features.history.controller.history import History
from decodescope.app.panels.centre import Centre
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.state.run_history import NavigationHistory, RunTreeEntry, RunTrees, make_entry, parents_first
from decodescope.app.views.base import View
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.app.features.history.store.history_store import HistoryStore

VIEW = "branches"
_BUSY = mark("A run is in progress")


class RunTreeController(QObject):
    """Keeps the runs of the shown run's tree in memory and reads older ones from the history. `noticed(text, title)`: a
    run cannot be shown now.
    """

    noticed = Signal(str, str)

    def __init__(self, session: Session, centre: Centre, history: History, family: RunTrees) -> None:
        super().__init__(centre)
        self._session, self._centre, self._history, self._family = session, centre, history, family
        for view in centre.created_views:
            self.connect_view(view)
        centre.viewCreated.connect(self.connect_view)
        session.runStarted.connect(self.on_shown)
        session.runShown.connect(self.on_shown)
        session.finished.connect(self.on_finished)

    @property
    def members(self) -> list[RunTreeEntry]:
        """The tree of the shown run, parents before children."""
        run = self._session.run
        return parents_first(self._family.tree_of(run.id)) if run is not None else []

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Show the run tree in `view` and connect its signals."""
        view.signals.relatedRunRequested.connect(self.show)
        self._show_tree(view, self.members)

    @Slot(object)
    def on_shown(self, run: Run) -> None:
        """Update the tree for the shown run and release runs of other trees."""
        self._family.add(make_entry(run))
        self._add_parents(run.request.parent)
        known = {member.id for member in self._family.tree_of(run.id)}
        held = {**self._family.runs_in_memory, run.id: run}
        self._family.runs_in_memory = {one: whole for one, whole in held.items() if one in known}
        self._update_views()

    @Slot(object)
    def on_finished(self, _outcome: object) -> None:
        """Update the finished run in the tree."""
        run = self._session.run
        if run is not None:
            self._family.add(make_entry(run))
            self._update_views()

    @Slot(str)
    def show(self, run: str) -> None:
        """Show a run of the tree."""
        if self._session.run is not None and run == self._session.run.id:
            return
        if self._session.busy:
            self.noticed.emit(tr("Stop the run or wait for it, then show another branch."), tr(_BUSY))
            self._update_views()
        elif run in self._family.runs_in_memory:
            self._session.show(self._family.runs_in_memory[run])
        else:
            self._history.show(run)

    def _add_parents(self, run: str) -> None:
        """Add parents from the history."""
        if self._history.store_if_open is None:
            return
        while run and run not in self._family and (record := self._history.get(run)) is not None:
            parent = record.parent or ""
            self._family.add(
                RunTreeEntry(run, parent, record.place or 0, record.words, record.strategy, record.tokens, "")
            )
            run = parent

    def _update_views(self) -> None:
        members = self.members
        self._centre.set_view_available(VIEW, len(members) > 1)
        for view in self._centre.created_views:
            self._show_tree(view, members)

    def _show_tree(self, view: View, members: list[RunTreeEntry]) -> None:
        run = self._session.run
        view.family_changed(members, run.id if run is not None else "")


class RunNavigation(QObject):
    """Shows the previous or next run. `changed(can go back, can go forward)`."""

    changed = Signal(bool, bool)

    def __init__(self, session: Session, history: History) -> None:
        super().__init__(session)
        self._session, self._history = session, history
        self.generations = NavigationHistory()
        self._shown: Run | None = None
        for signal in (session.runStarted, session.runShown):
            signal.connect(self._on_shown)
        history.allDeleted.connect(self._on_all_deleted)
        for source_signal in (session.finished, history.changed, history.opened):
            source_signal.connect(self.emit_state)

    @property
    def can_go_back(self) -> bool:
        """Whether there is an earlier run and none is in progress."""
        return not self._session.busy and self._previous_run() is not None

    @property
    def can_go_forward(self) -> bool:
        """Whether there is a later run and none is in progress."""
        return not self._session.busy and self.generations.neighbour(1) is not None

    @Slot()
    def back(self) -> None:
        """Show the previous run."""
        run = self._previous_run()
        if run is not None and run not in self.generations.ids:
            self.generations.insert_first(run)
        self._show(run)

    @Slot()
    def forward(self) -> None:
        """Show the next run."""
        self._show(self.generations.neighbour(1))

    @Slot()
    def emit_state(self) -> None:
        """Emit `changed` with the current state."""
        self.changed.emit(self.can_go_back, self.can_go_forward)

    def _previous_run(self) -> str | None:
        """Return the previous run of this window, else the latest saved one before it."""
        before = self.generations.neighbour(-1)
        if before is not None or self._history.store_if_open is None:
            return before
        return self._history.query(self._latest_before, None)

    def _latest_before(self, store: HistoryStore) -> str | None:
        """Return the latest saved run from before the first one here that is not in the list."""
        if not self.generations.ids:
            return store.latest()
        first = store.get(self.generations.ids[0])
        while first is not None and (run := store.latest(before=first.made)) is not None:
            if run not in self.generations.ids:
                return run
            first = store.get(run)
        return None

    def _show(self, run: str | None) -> None:
        if run is None or self._session.busy:
            return
        previous, held = self.generations.index, self.generations.run_in_memory(run)
        self.generations.go(run)
        is_shown = self._session.show(held) if held is not None else self._history.show(run)
        if not is_shown:
            self.generations.index = previous
            self.emit_state()

    @Slot(object)
    def _on_shown(self, run: Run) -> None:
        before, self._shown = self._shown, run
        self.generations.show(run)
        if before is not None and before is not run and before.outcome is not None and not before.is_worth_keeping:
            self.generations.remove([before.id])
        self.emit_state()

    @Slot()
    def _on_all_deleted(self) -> None:
        """Drop all runs except the shown one."""
        self.generations.remove(self.generations.ids)
        self.emit_state()
