"""Back and forth through the runs of a window: Ctrl+Z and Ctrl+Y; before the first one lie those of earlier days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from app.control.history import History
from app.session.session import Session
from app.state.run import Run
from app.state.run_history import Generations

if TYPE_CHECKING:
    from app.storage.history.store import HistoryStore


class RunNavigation(QObject):
    """`changed(can go back, can go forward)`."""

    changed = Signal(bool, bool)

    def __init__(self, session: Session, history: History) -> None:
        super().__init__(session)
        self._session, self._history = session, history
        self.generations = Generations()
        self._shown: Run | None = None
        for signal in (session.runStarted, session.runShown):
            signal.connect(self._on_shown)
        history.forgotten.connect(self._on_forgotten)
        for told in (session.finished, history.changed, history.opened):
            told.connect(self.tell)

    @property
    def can_go_back(self) -> bool:
        """Whether there is an earlier run, and none is under way."""
        return not self._session.busy and self._before() is not None

    @property
    def can_go_forward(self) -> bool:
        """Whether there is a later run, and none is under way."""
        return not self._session.busy and self.generations.beside(1) is not None

    @Slot()
    def back(self) -> None:
        """Show the run before the shown one."""
        run = self._before()
        if run is not None and run not in self.generations.ids:
            self.generations.begin_with(run)
        self._show(run)

    @Slot()
    def forward(self) -> None:
        """Show the run after the shown one."""
        self._show(self.generations.beside(1))

    @Slot()
    def tell(self) -> None:
        """Say what can be done now."""
        self.changed.emit(self.can_go_back, self.can_go_forward)

    def _before(self) -> str | None:
        """The run before the shown one: of this window, else of what was kept before."""
        before = self.generations.beside(-1)
        if before is not None or self._history.store_if_open is None:
            return before
        return self._history.ask(self._earlier, None)

    def _earlier(self, store: HistoryStore) -> str | None:
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
        was, held = self.generations.place, self.generations.held(run)
        self.generations.go(run)
        is_shown = self._session.show(held) if held is not None else self._history.show(run)
        if not is_shown:
            self.generations.place = was
            self.tell()

    @Slot(object)
    def _on_shown(self, run: Run) -> None:
        before, self._shown = self._shown, run
        self.generations.show(run)
        if before is not None and before is not run and before.outcome is not None and not before.is_worth_keeping:
            self.generations.drop([before.id])
        self.tell()

    @Slot()
    def _on_forgotten(self) -> None:
        """Nothing but the shown run is there any more."""
        self.generations.drop(self.generations.ids)
        self.tell()
