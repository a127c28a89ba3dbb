"""The history: every run that is shown is recorded as it goes on, kept when it ends, and can be opened again.

SQLite and the recordings' format are imported when something is first kept or looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.control.keeping import Keeper
from app.session.session import Session
from app.state.requests import Outcome, report
from app.state.run import Run
from app.storage.files import StorageError
from app.storage.settings import History as Kept
from core.errors import TokenscopeError
from resources.language import sentences, tr

if TYPE_CHECKING:
    from app.session.mailbox import Recording
    from app.storage.history.record import Record
    from app.storage.history.recordings import Recordings
    from app.storage.history.store import HistoryStore

FOLDER = "history"
T = TypeVar("T")


class History(QObject):
    """`kept(id)` for each run that is there from now on, `changed` when another one is, or another is not."""

    kept = Signal(str)
    changed = Signal()
    forgotten = Signal()
    """Everything is."""
    opened = Signal()
    """The file is open, or cannot be: `why_not`."""
    refused = Signal(object)
    """Something asked for could not be done: an `ErrorReport`."""
    noticed = Signal(str, str)
    """Something to know: text and title."""

    def __init__(self, session: Session, folder: Callable[[], Path], settings: Kept, keeper: Keeper) -> None:
        super().__init__(session)
        self._session, self._folder, self._settings, self._keeper = session, folder, settings, keeper
        self._store: HistoryStore | None = None
        self._recordings: Recordings | None = None
        self._paths: dict[str, Path] = {}
        self._ended: dict[Path, Run] = {}
        """Runs whose recordings are not closed yet."""
        self._is_over = False
        self.why_not = ""
        """Why nothing can be kept or looked for; empty while it can."""
        session.record_with(self.place)
        session.finished.connect(self._on_finished)
        session.recorded.connect(self._on_recorded)

    @property
    def store(self) -> HistoryStore | None:
        """The kept runs; None where they cannot be had, which `why_not` explains, and once the window is closed."""
        if self._store is None and not self.why_not and not self._is_over:
            self._open()
        return self._store

    @property
    def store_if_open(self) -> HistoryStore | None:
        """The same, without opening it now."""
        return self._store

    @property
    def recordings(self) -> Recordings:
        """Those under way."""
        if self._recordings is None:
            from app.storage.history.recordings import Recordings

            self._recordings = Recordings(self._folder() / FOLDER)
        return self._recordings

    @Slot()
    def open_later(self) -> None:
        """Open the file as soon as there is nothing else to do."""
        QTimer.singleShot(0, self, lambda: self.store)

    def place(self, run: Run) -> Path | None:
        """Where a run that begins is recorded; None when none is kept."""
        if not self._settings.keep or self.why_not:
            return None
        try:
            self._paths[run.id] = self.recordings.place(run.id)
        except StorageError as error:
            self._keeper.tell(error)
        return self._paths.get(run.id)

    def open_run(self, run: str) -> Run:
        """A kept run, as it was. Raises TokenscopeError where it is not there or cannot be read."""
        import core
        from app.state.recorded import run_of

        if self.store is None:
            raise StorageError(self.why_not)
        opened = run_of(core.trace.read(self.store.trace(run)))
        opened.id = run
        return opened

    def show(self, run: str) -> bool:
        """Show a kept run in the window; False, and said, where that cannot be."""
        try:
            opened = self.open_run(run)
        except TokenscopeError as error:
            self.refused.emit(report(error))
            return False
        return self._session.show(opened)

    def keep(self, run: Run, recording: Path) -> None:
        """Keep a run that has ended; one that wrote nothing is not worth it."""
        from app.storage.history.of_run import keeping_of

        if run.started is None or self.store is None:
            with suppress(OSError):
                recording.unlink()
            return
        self.store.keep(keeping_of(run), recording)
        self.store.trim(self._settings.budget)
        self.kept.emit(run.id)
        self.changed.emit()

    def ask(self, question: Callable[[HistoryStore], T], otherwise: T) -> T:
        """What the kept runs say; `otherwise` where they cannot be had (now), which is told."""
        try:
            return self.demand(question, otherwise)
        except StorageError as error:
            self._keeper.tell(error)
            return otherwise

    def demand(self, question: Callable[[HistoryStore], T], otherwise: T) -> T:
        """The same, `otherwise` where nothing is kept at all. Raises StorageError where the disk refuses."""
        store = self.store
        if store is None:
            return otherwise
        try:
            return question(store)
        finally:
            if store.notices:  # a new file has begun; whoever asked may be painting
                QTimer.singleShot(0, self, self._on_repaired)

    @Slot()
    def _on_repaired(self) -> None:
        if self._store is not None and self._store.notices:
            self._tell_notices(self._store)
            self.changed.emit()

    def get(self, run: str) -> Record | None:
        """One kept run; None where it is not there, or cannot be had now."""
        return self.ask(lambda store: store.get(run), None)

    def forget_all(self) -> None:
        """Remove everything that is kept, and what killed programs have left."""
        self.change(lambda store: store.forget_all())
        self.forgotten.emit()

    def change(self, action: Callable[[HistoryStore], object]) -> None:
        """Do something to the kept runs, and tell of it."""
        store = self.store
        if store is not None:
            self._keeper.keep(partial(action, store))
            self._tell_notices(store)
            self.changed.emit()

    @Slot()
    def trim(self) -> None:
        """The room has become smaller, maybe."""
        budget = self._settings.budget
        if self._store is not None:
            self.change(lambda store: store.trim(budget))

    def stop(self) -> None:
        """The window closes."""
        for recording in list(self._ended):
            self._keep_ended(recording)
        if self._recordings is not None:
            self._recordings.close()
        self._is_over = True  # what still waits for its turn must not open the file again
        if self._store is not None:
            self._store.close()
            self._store = None

    def _open(self) -> None:
        from app.storage.history.store import HistoryStore

        try:
            self._store = HistoryStore(self._folder() / FOLDER)
        except TokenscopeError as error:
            self.why_not = str(error)
            self.noticed.emit(self.why_not, tr(error.title))
        else:
            self._tell_notices(self._store)
        self.opened.emit()

    def _tell_notices(self, store: HistoryStore) -> None:
        while store.notices:
            self.noticed.emit(store.notices.pop(0), tr("The history was repaired"))

    @Slot(object)
    def _on_finished(self, _outcome: Outcome) -> None:
        """It is kept once its recording is whole: whoever waits for the run's end comes first."""
        run = self._session.run
        path = self._paths.pop(run.id, None) if run is not None else None
        if run is not None and path is not None:
            self._ended[path] = run

    @Slot(object)
    def _on_recorded(self, recording: Recording) -> None:
        why = recording.trouble
        if why is not None:
            self.noticed.emit(sentences(why.cause, why.remedy), tr("This run is not kept whole"))
        self._keep_ended(recording.path)

    def _keep_ended(self, recording: Path) -> None:
        run = self._ended.pop(recording, None)
        if run is not None:
            self._keeper.keep(partial(self.keep, run, recording))
            if self._store is not None:
                self._tell_notices(self._store)
