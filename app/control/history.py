"""The history: every run that is shown is recorded as it goes on, kept when it ends, and can be opened again.

SQLite and the recordings' format are imported when something is first kept or looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot

from app.control.history_file import FOLDER, HistoryFile
from app.control.persistence import SettingsSaver
from app.session.session import Session
from app.state.run import Run
from app.state.worker_messages import Outcome, make_error_report
from app.storage.json_files import StorageError
from app.storage.settings import HistorySection as Kept
from core.errors import DecodescopeError
from resources.language import join_sentences, tr

if TYPE_CHECKING:
    from app.session.mailbox import Recording
    from app.storage.history.recordings import ActiveRecordings


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
            from app.storage.history.recordings import ActiveRecordings

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
        from app.storage.history.run_record import saved_run_data

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
