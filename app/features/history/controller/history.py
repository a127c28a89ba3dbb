"""Run history: every shown run is recorded while it runs, saved when it ends, and can be opened again.

SQLite and the trace format are imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope.app.control.messages import Messages
from decodescope.app.control.persistence import SettingsSaver
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import Outcome, make_error_report
from decodescope.app.storage.json_files import StorageError
from decodescope.app.storage.settings import HistorySection as Kept
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import join_sentences, mark, tr, trn

if TYPE_CHECKING:
    from decodescope.app.features.history.store.history_record import HistoryRecord
    from decodescope.app.features.history.store.history_store import ActiveRecordings, HistoryStore
    from decodescope.app.session.mailbox import Recording

FOLDER = "history"
T = TypeVar("T")


class HistoryFile(QObject):
    """Opens the history file on demand. `changed` is emitted when a run is added or removed."""

    changed = Signal()
    opened = Signal()
    """The file was opened, or could not be (`unavailable_reason`)."""
    noticed = Signal(str, str)
    """A notice for the user: text and title."""

    def __init__(self, parent: QObject, folder: Callable[[], Path], saver: SettingsSaver) -> None:
        super().__init__(parent)
        self._folder, self._saver = folder, saver
        self._store: HistoryStore | None = None
        self._is_closed = False
        self.unavailable_reason = ""
        """Why the history cannot be used; empty while it can."""

    @property
    def store(self) -> HistoryStore | None:
        """The saved runs; None if unavailable (see `unavailable_reason`) or after the window was closed."""
        if self._store is None and not self.unavailable_reason and not self._is_closed:
            self._open()
        return self._store

    @property
    def store_if_open(self) -> HistoryStore | None:
        """The store if it is open already, else None."""
        return self._store

    @Slot()
    def open_later(self) -> None:
        """Open the file when the event loop is idle."""
        QTimer.singleShot(0, self, lambda: self.store)

    def query(self, question: Callable[[HistoryStore], T], default: T) -> T:
        """Return the result of `question`; on a storage error show it and return `default`."""
        try:
            return self.query_or_raise(question, default)
        except StorageError as error:
            self._saver.report_error(error)
            return default

    def query_or_raise(self, question: Callable[[HistoryStore], T], default: T) -> T:
        """Return the result of `question`, `default` without a history. Raises StorageError on disk errors."""
        store = self.store
        if store is None:
            return default
        try:
            return question(store)
        finally:
            if store.notices:  # a new file was started; the caller may be painting
                QTimer.singleShot(0, self, self._on_repaired)

    @Slot()
    def _on_repaired(self) -> None:
        if self._emit_notices():
            self.changed.emit()

    def get(self, run: str) -> HistoryRecord | None:
        """Return one saved run; None if it is missing or unavailable now."""
        return self.query(lambda store: store.get(run), None)

    def change(self, action: Callable[[HistoryStore], object]) -> None:
        """Change the saved runs and emit `changed`."""
        store = self.store
        if store is not None:
            self._saver.write(partial(action, store))
            self._emit_notices()
            self.changed.emit()

    def close(self) -> None:
        """Close the file; it is not opened again."""
        self._is_closed = True  # pending calls must not open the file again
        if self._store is not None:
            self._store.close()
            self._store = None

    def _open(self) -> None:
        from decodescope.app.features.history.store.history_store import HistoryStore

        try:
            self._store = HistoryStore(self._folder() / FOLDER)
        except DecodescopeError as error:
            self.unavailable_reason = str(error)
            self.noticed.emit(self.unavailable_reason, tr(error.title))
        else:
            self._emit_notices()
        self.opened.emit()

    def _emit_notices(self) -> bool:
        """Emit pending notices; return whether there were any."""
        notices = self._store.notices if self._store is not None else []
        pending, notices[:] = notices[:], []
        for notice in pending:
            self.noticed.emit(notice, tr("History repaired"))
        return bool(pending)


class History(HistoryFile):
    """Saves and opens runs. `runSaved(id)` is emitted for each run that is saved."""

    runSaved = Signal(str)
    allDeleted = Signal()
    """All runs were deleted."""
    failed = Signal(object)
    """An action failed: an `ErrorReport`."""

    def __init__(self, session: Session, folder: Callable[[], Path], settings: Kept, saver: SettingsSaver) -> None:
        super().__init__(session, folder, saver)
        self._session, self._settings = session, settings
        self._recordings: ActiveRecordings | None = None
        self._paths: dict[str, Path] = {}
        self._unsaved_runs: dict[Path, Run] = {}
        """Finished runs whose recordings are not closed yet."""
        session.set_recording(self.recording_path)
        session.finished.connect(self._on_finished)
        session.recorded.connect(self._on_recorded)

    @property
    def recordings(self) -> ActiveRecordings:
        """The recordings in progress."""
        if self._recordings is None:
            from decodescope.app.features.history.store.history_store import ActiveRecordings

            self._recordings = ActiveRecordings(self._folder() / FOLDER)
        return self._recordings

    def recording_path(self, run: Run) -> Path | None:
        """Return the file that a new run is recorded to; None if runs are not kept."""
        if not self._settings.keep or self.unavailable_reason:
            return None
        try:
            self._paths[run.id] = self.recordings.create_file(run.id)
        except StorageError as error:
            self._saver.report_error(error)
        return self._paths.get(run.id)

    def open_run(self, run: str) -> Run:
        """Load a saved run. Raises DecodescopeError if it is missing or unreadable."""
        from decodescope import core
        from decodescope.app.state.recorded_run import load_run

        if self.store is None:
            raise StorageError(self.unavailable_reason)
        opened = load_run(core.trace.read(self.store.trace_path(run)))
        opened.id = run
        return opened

    def show(self, run: str) -> bool:
        """Show a saved run in the window; on failure emit `failed` and return False."""
        try:
            opened = self.open_run(run)
        except DecodescopeError as error:
            self.failed.emit(make_error_report(error))
            return False
        return self._session.show(opened)

    def save_run(self, run: Run, recording: Path) -> None:
        """Save a finished run, unless it generated nothing."""
        from decodescope.app.features.history.store.history_record import saved_run_data

        if run.started is None or not run.is_worth_keeping or self.store is None:
            with suppress(OSError):
                recording.unlink()
            return
        self.store.save(saved_run_data(run), recording)
        self.store.trim(self._settings.budget)
        self.runSaved.emit(run.id)
        self.changed.emit()

    def save_received(self, run: Run, recording: Path) -> None:
        """Save a run of another process, whose complete recording is at the path that `recording_path` returned."""
        self._paths.pop(run.id, None)
        self._unsaved_runs.pop(recording, None)
        self._saver.write(partial(self.save_run, run, recording))
        self._emit_notices()

    def delete_all(self) -> None:
        """Delete all saved runs and recordings left by killed programs."""
        self.change(lambda store: store.forget_all())
        self.allDeleted.emit()

    @Slot()
    def trim(self) -> None:
        """Delete the oldest runs if the history exceeds its size limit."""
        budget = self._settings.budget
        if self.store_if_open is not None:
            self.change(lambda store: store.trim(budget))

    def stop(self) -> None:
        """Save finished runs and close the file when the window closes."""
        for recording in list(self._unsaved_runs):
            self._save_finished(recording)
        if self._recordings is not None:
            self._recordings.close()
        self.close()

    @Slot(object)
    def _on_finished(self, _outcome: Outcome) -> None:
        """Mark the run for saving once its recording is complete."""
        run = self._session.run
        path = self._paths.pop(run.id, None) if run is not None else None
        if run is not None and path is not None:
            self._unsaved_runs[path] = run

    @Slot(object)
    def _on_recorded(self, recording: Recording) -> None:
        why = recording.error
        if why is not None:
            self.noticed.emit(join_sentences(why.cause, why.remedy), tr("This run was not saved completely"))
        self._save_finished(recording.path)

    def _save_finished(self, recording: Path) -> None:
        run = self._unsaved_runs.pop(recording, None)
        if run is not None:
            self._saver.write(partial(self.save_run, run, recording))
            self._emit_notices()


SHOW, FORGET = "showLeftRun", "forgetLeftRuns"
TITLE = mark("A run was interrupted")


class Recovery(QObject):
    """Shows a notice with buttons; the recordings stay until one is pressed."""

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
        """Find recordings that no running program writes; those of runs that are saved already are moved into the
        history.
        """
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
            "A run was in progress when Decodescope closed unexpectedly. Its text so far was kept.",
            "{count:,} runs were in progress when Decodescope closed unexpectedly. Their text so far was kept.",
            count,
        )
        show, forget = trn("Show it", "Show them", count), trn("Delete it", "Delete them", count)
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
        """Save all recovered runs and show the latest."""
        from decodescope import core
        from decodescope.app.state.recorded_run import load_run

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
    except OSError:  # deleted meanwhile; reading it raises the error
        return 0.0


def _has_events(path: Path) -> bool:
    """Return whether a recording contains events; delete it if not."""
    from decodescope import core
    from decodescope.core.errors import TraceError

    try:
        if core.trace.read(path).events:
            return True
    except TraceError:
        pass
    with suppress(OSError):
        path.unlink()
    return False
