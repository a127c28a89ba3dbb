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

from app.control.messages import Messages
from app.control.persistence import SettingsSaver
from app.session.session import Session
from app.state.run import Run
from app.state.worker_messages import Outcome, make_error_report
from app.storage.json_files import StorageError
from app.storage.settings import HistorySection as Kept
from core.errors import DecodescopeError
from resources.language import join_sentences, mark, tr, trn

if TYPE_CHECKING:
    from app.session.mailbox import Recording
    from app.storage.history.history_record import HistoryRecord
    from app.storage.history.store import ActiveRecordings, HistoryStore

FOLDER = "history"
T = TypeVar("T")


class HistoryFile(QObject):
    """`changed` when a run is there that was not, or the other way round."""

    changed = Signal()
    opened = Signal()
    """The file is open, or cannot be: `unavailable_reason`."""
    noticed = Signal(str, str)
    """Something to know: text and title."""

    def __init__(self, parent: QObject, folder: Callable[[], Path], saver: SettingsSaver) -> None:
        super().__init__(parent)
        self._folder, self._saver = folder, saver
        self._store: HistoryStore | None = None
        self._is_closed = False
        self.unavailable_reason = ""
        """Why nothing can be kept or looked for; empty while it can."""

    @property
    def store(self) -> HistoryStore | None:
        """The kept runs; None where they cannot be had, which `unavailable_reason` explains, and once the window is closed."""
        if self._store is None and not self.unavailable_reason and not self._is_closed:
            self._open()
        return self._store

    @property
    def store_if_open(self) -> HistoryStore | None:
        """The same, without opening it now."""
        return self._store

    @Slot()
    def open_later(self) -> None:
        """Open the file as soon as there is nothing else to do."""
        QTimer.singleShot(0, self, lambda: self.store)

    def query(self, question: Callable[[HistoryStore], T], default: T) -> T:
        """What the kept runs say; `default` where they cannot be had (now), which is told."""
        try:
            return self.query_or_raise(question, default)
        except StorageError as error:
            self._saver.report_error(error)
            return default

    def query_or_raise(self, question: Callable[[HistoryStore], T], default: T) -> T:
        """The same, `default` where nothing is kept at all. Raises StorageError where the disk refuses."""
        store = self.store
        if store is None:
            return default
        try:
            return question(store)
        finally:
            if store.notices:  # a new file has begun; whoever asked may be painting
                QTimer.singleShot(0, self, self._on_repaired)

    @Slot()
    def _on_repaired(self) -> None:
        if self._emit_notices():
            self.changed.emit()

    def get(self, run: str) -> HistoryRecord | None:
        """One kept run; None where it is not there, or cannot be had now."""
        return self.query(lambda store: store.get(run), None)

    def change(self, action: Callable[[HistoryStore], object]) -> None:
        """Do something to the kept runs, and tell of it."""
        store = self.store
        if store is not None:
            self._saver.write(partial(action, store))
            self._emit_notices()
            self.changed.emit()

    def close(self) -> None:
        """Give it back; it is not opened again."""
        self._is_closed = True  # what still waits for its turn must not open the file again
        if self._store is not None:
            self._store.close()
            self._store = None

    def _open(self) -> None:
        from app.storage.history.store import HistoryStore

        try:
            self._store = HistoryStore(self._folder() / FOLDER)
        except DecodescopeError as error:
            self.unavailable_reason = str(error)
            self.noticed.emit(self.unavailable_reason, tr(error.title))
        else:
            self._emit_notices()
        self.opened.emit()

    def _emit_notices(self) -> bool:
        """Whether there was something to tell."""
        notices = self._store.notices if self._store is not None else []
        pending, notices[:] = notices[:], []
        for notice in pending:
            self.noticed.emit(notice, tr("The history was repaired"))
        return bool(pending)


class History(HistoryFile):
    """`runSaved(id)` for each run that is there from now on."""

    runSaved = Signal(str)
    allDeleted = Signal()
    """Everything is."""
    failed = Signal(object)
    """Something asked for could not be done: an `ErrorReport`."""

    def __init__(self, session: Session, folder: Callable[[], Path], settings: Kept, saver: SettingsSaver) -> None:
        super().__init__(session, folder, saver)
        self._session, self._settings = session, settings
        self._recordings: ActiveRecordings | None = None
        self._paths: dict[str, Path] = {}
        self._unsaved_runs: dict[Path, Run] = {}
        """Runs whose recordings are not closed yet."""
        session.set_recording(self.recording_path)
        session.finished.connect(self._on_finished)
        session.recorded.connect(self._on_recorded)

    @property
    def recordings(self) -> ActiveRecordings:
        """Those under way."""
        if self._recordings is None:
            from app.storage.history.store import ActiveRecordings

            self._recordings = ActiveRecordings(self._folder() / FOLDER)
        return self._recordings

    def recording_path(self, run: Run) -> Path | None:
        """Where a run that begins is recorded; None when none is kept."""
        if not self._settings.keep or self.unavailable_reason:
            return None
        try:
            self._paths[run.id] = self.recordings.create_file(run.id)
        except StorageError as error:
            self._saver.report_error(error)
        return self._paths.get(run.id)

    def open_run(self, run: str) -> Run:
        """A kept run, as it was. Raises DecodescopeError where it is not there or cannot be read."""
        import core
        from app.state.recorded_run import load_run

        if self.store is None:
            raise StorageError(self.unavailable_reason)
        opened = load_run(core.trace.read(self.store.trace_path(run)))
        opened.id = run
        return opened

    def show(self, run: str) -> bool:
        """Show a kept run in the window; False, and said, where that cannot be."""
        try:
            opened = self.open_run(run)
        except DecodescopeError as error:
            self.failed.emit(make_error_report(error))
            return False
        return self._session.show(opened)

    def save_run(self, run: Run, recording: Path) -> None:
        """Keep a run that has ended, unless it wrote nothing."""
        from app.storage.history.history_record import saved_run_data

        if run.started is None or not run.is_worth_keeping or self.store is None:
            with suppress(OSError):
                recording.unlink()
            return
        self.store.save(saved_run_data(run), recording)
        self.store.trim(self._settings.budget)
        self.runSaved.emit(run.id)
        self.changed.emit()

    def delete_all(self) -> None:
        """Remove everything that is kept, and what killed programs have left."""
        self.change(lambda store: store.forget_all())
        self.allDeleted.emit()

    @Slot()
    def trim(self) -> None:
        """The room has become smaller, maybe."""
        budget = self._settings.budget
        if self.store_if_open is not None:
            self.change(lambda store: store.trim(budget))

    def stop(self) -> None:
        """The window closes."""
        for recording in list(self._unsaved_runs):
            self._save_finished(recording)
        if self._recordings is not None:
            self._recordings.close()
        self.close()

    @Slot(object)
    def _on_finished(self, _outcome: Outcome) -> None:
        """It is kept once its recording is whole: whoever waits for the run's end comes first."""
        run = self._session.run
        path = self._paths.pop(run.id, None) if run is not None else None
        if run is not None and path is not None:
            self._unsaved_runs[path] = run

    @Slot(object)
    def _on_recorded(self, recording: Recording) -> None:
        why = recording.error
        if why is not None:
            self.noticed.emit(join_sentences(why.cause, why.remedy), tr("This run is not kept whole"))
        self._save_finished(recording.path)

    def _save_finished(self, recording: Path) -> None:
        run = self._unsaved_runs.pop(recording, None)
        if run is not None:
            self._saver.write(partial(self.save_run, run, recording))
            self._emit_notices()


SHOW, FORGET = "showLeftRun", "forgetLeftRuns"
TITLE = mark("A run was cut short")


class Recovery(QObject):
    """Says so in a notice; until one of its buttons is pressed, the recordings stay where they are."""

    def __init__(self, history: History, messages: Messages) -> None:
        super().__init__(messages)
        self._history, self._messages = history, messages
        self._unfinished: dict[str, Path] = {}
        history.opened.connect(self.find_unfinished)
        history.allDeleted.connect(self._delete_unfinished)
        messages.noticeAction.connect(self._on_action)
        self.find_unfinished()

    @Slot()
    def find_unfinished(self) -> None:
        """Look for recordings without a program; those of runs that are kept just had not been put away."""
        store = self._history.store_if_open
        if store is None:
            return
        found = self._history.recordings.claim_abandoned()
        for run, path in found.items():
            if self._history.get(run) is not None:
                with suppress(DecodescopeError):
                    store.move_recording_in(path, run)
            elif _has_events(path):
                self._unfinished[run] = path
        if self._unfinished:
            self._offer()

    def _offer(self) -> None:
        count = len(self._unfinished)
        text = trn(
            "A run was under way when Decodescope was last closed without warning. What had been written is still "
            "there.",
            "{count:,} runs were under way when Decodescope was last closed without warning. What had been written is "
            "still there.",
            count,
        )
        show, forget = trn("Show it", "Show them", count), trn("Forget it", "Forget them", count)
        self._messages.show_notice(text.format(count=count), tr(TITLE), [(SHOW, show), (FORGET, forget)])

    @Slot(str)
    def _on_action(self, name: str) -> None:
        if name == SHOW:
            self._recover()
        elif name == FORGET:
            self._delete_unfinished()

    @Slot()
    def _delete_unfinished(self) -> None:
        for path in self._unfinished.values():
            with suppress(OSError):
                path.unlink()
        self._unfinished = {}
        self._messages.withdraw_notice(tr(TITLE))

    def _recover(self) -> None:
        """Keep all of them, and show the latest."""
        import core
        from app.state.recorded_run import load_run

        left, self._unfinished = sorted(self._unfinished.items(), key=lambda item: _modified(item[1])), {}
        latest = ""
        for run, path in left:
            try:
                recovered = load_run(core.trace.read(path))
                recovered.id = run
                self._history.save_run(recovered, path)
                latest = run
            except DecodescopeError as error:
                self._history.failed.emit(make_error_report(error))
        if latest:
            self._history.show(latest)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # somebody has removed it; reading it says so
        return 0.0


def _has_events(path: Path) -> bool:
    """Whether a run had begun; a file that has nothing to show is removed."""
    import core
    from core.errors import TraceError

    try:
        if core.trace.read(path).events:
            return True
    except TraceError:
        pass
    with suppress(OSError):
        path.unlink()
    return False
