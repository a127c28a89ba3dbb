"""Back and forth through the runs of a window: Ctrl+Z and Ctrl+Y; before the first one lie those of earlier days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.control.history import History
from app.session.session import Session
from app.state.run import Run
from app.state.run_history import NavigationHistory

if TYPE_CHECKING:
    from app.storage.history.store import HistoryStore


class RunNavigation(QObject):
    """`changed(can go back, can go forward)`."""

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
        """Whether there is an earlier run, and none is under way."""
        return not self._session.busy and self._previous_run() is not None

    @property
    def can_go_forward(self) -> bool:
        """Whether there is a later run, and none is under way."""
        return not self._session.busy and self.generations.neighbour(1) is not None

    @Slot()
    def back(self) -> None:
        """Show the run before the shown one."""
        run = self._previous_run()
        if run is not None and run not in self.generations.ids:
            self.generations.insert_first(run)
        self._show(run)

    @Slot()
    def forward(self) -> None:
        """Show the run after the shown one."""
        self._show(self.generations.neighbour(1))

    @Slot()
    def emit_state(self) -> None:
        """Say what can be done now."""
        self.changed.emit(self.can_go_back, self.can_go_forward)

    def _previous_run(self) -> str | None:
        """The run before the shown one: of this window, else of what was kept before."""
        before = self.generations.neighbour(-1)
        if before is not None or self._history.store_if_open is None:
            return before
        return self._history.query(self._latest_before, None)

    def _latest_before(self, store: HistoryStore) -> str | None:
        """The latest kept run that was made before the first one here and is none of these."""
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
        """Nothing but the shown run is there any more."""
        self.generations.remove(self.generations.ids)
        self.emit_state()
