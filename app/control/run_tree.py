"""Keeps the family of the shown run: its tree stands in a view, and any run of it is one click away."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.control.history import History
from app.panels.centre import Centre
from app.session.session import Session
from app.state.run import Run
from app.state.run_tree import Family, Member, in_order, member_of
from app.views.base import View
from resources.language import mark, tr

VIEW = "branches"
_BUSY = mark("A run is under way")


class FamilyController(QObject):
    """Holds the runs of the shown one's family in memory; older ones are read from the history. `noticed(text, title)`:
    why none of them can be shown now."""

    noticed = Signal(str, str)

    def __init__(self, session: Session, centre: Centre, history: History, family: Family) -> None:
        super().__init__(centre)
        self._session, self._centre, self._history, self._family = session, centre, history, family
        for view in centre.made:
            self.connect_view(view)
        centre.viewAdded.connect(self.connect_view)
        session.runStarted.connect(self.on_shown)
        session.runShown.connect(self.on_shown)
        session.finished.connect(self.on_finished)

    @property
    def members(self) -> list[Member]:
        """The family of the shown run, parents before children."""
        run = self._session.run
        return in_order(self._family.around(run.id)) if run is not None else []

    @Slot(object)
    def connect_view(self, view: View) -> None:
        """Let a view show the family, and obey what the reader does in it."""
        view.signals.relativeWanted.connect(self.show)
        self._tell(view, self.members)

    @Slot(object)
    def on_shown(self, run: Run) -> None:
        """Another run is shown; those of other families are let go."""
        self._family.add(member_of(run))
        self._add_parents(run.request.parent)
        known = {member.id for member in self._family.around(run.id)}
        held = {**self._family.held, run.id: run}
        self._family.held = {one: whole for one, whole in held.items() if one in known}
        self._tell_all()

    @Slot(object)
    def on_finished(self, _outcome: object) -> None:
        """What the run has written is known now."""
        run = self._session.run
        if run is not None:
            self._family.add(member_of(run))
            self._tell_all()

    @Slot(str)
    def show(self, run: str) -> None:
        """Show a run of the family."""
        if self._session.run is not None and run == self._session.run.id:
            return
        if self._session.busy:
            self.noticed.emit(tr("Stop it, or wait for its end; then show another run of its family."), tr(_BUSY))
            self._tell_all()
        elif run in self._family.held:
            self._session.show(self._family.held[run])
        else:
            self._history.show(run)

    def _add_parents(self, run: str) -> None:
        """Runs of an earlier day, as far as the history knows them."""
        if self._history.store_if_open is None:
            return
        while run and run not in self._family and (record := self._history.get(run)) is not None:
            parent = record.parent or ""
            self._family.add(Member(run, parent, record.place or 0, record.words, record.strategy, record.tokens, ""))
            run = parent

    def _tell_all(self) -> None:
        members = self.members
        self._centre.offer_view(VIEW, len(members) > 1)
        for view in self._centre.made:
            self._tell(view, members)

    def _tell(self, view: View, members: list[Member]) -> None:
        run = self._session.run
        view.family_changed(members, run.id if run is not None else "")
