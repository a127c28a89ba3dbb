"""Recorded runs: open a trace file, and save the shown run as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.messages import Messages
from decodescope.app.control.settings_controller import SettingsController
from decodescope.app.session.session import Session
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import make_error_report
from decodescope.app.widgets.file_dialogs import open_file_dialog, open_save_dialog
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import mark, tr

SAVE_KINDS = mark("Recorded runs (*.decodescope)")
OPEN_KINDS = mark("Recorded runs (*.decodescope)")
USE_SETTINGS = "use_recorded_settings"
TITLE = mark("Recorded run")


class RecordedRuns(QObject):
    """Opens and saves trace files with dialogs above `parent_window`. `fileUsed(path)`: a file was opened or saved."""

    fileUsed = Signal(str)

    def __init__(self, parent_window: QWidget, session: Session, setup: SettingsController, messages: Messages) -> None:
        super().__init__(parent_window)
        self._parent_window, self._session, self._setup, self._messages = parent_window, session, setup, messages
        self._opened_run: Run | None = None
        messages.noticeAction.connect(self._on_action)
        session.runStarted.connect(self._on_run_changed)
        session.runShown.connect(self._on_run_changed)

    @Slot()
    def choose_file_to_open(self) -> None:
        """Open a file dialog for a recorded run."""
        open_file_dialog(self._parent_window, tr("Open recorded run"), tr(OPEN_KINDS), self.open)

    @Slot()
    def choose_save_path(self) -> None:
        """Open a file dialog to save the shown run."""
        run = self._session.run
        if run is None or run.outcome is None:
            self._messages.show_notice(tr("A run can be saved once it has ended."), tr("Nothing to save yet"))
        else:
            open_save_dialog(self._parent_window, tr("Save run"), "run.decodescope", tr(SAVE_KINDS), self.save)

    @Slot(str)
    def open(self, path: str) -> None:
        """Show the run in the file at `path`; its settings are applied only on request."""
        try:
            shown = self.show(Path(path))
        except DecodescopeError as error:
            self._messages.show_error(make_error_report(error))
            return
        if shown is not None:
            self.fileUsed.emit(path)

    def show(self, path: Path, omit_times: bool = False, offer_settings: bool = True) -> Run | None:
        """Show a recorded run; `omit_times` removes times, `offer_settings` offers its settings. Return None with a
        notice while a run is in progress.

        Raises DecodescopeError.
        """
        from decodescope import core
        from decodescope.app.session.engine_proxy import without_times
        from decodescope.app.state.recorded_run import describe_origin, load_run

        if self._session.busy:
            self._messages.show_notice(
                tr("Stop the current run or wait for it, then open the recording."), tr("Run in progress")
            )
            return None
        trace = core.trace.read(path)
        if omit_times:
            trace = replace(trace, events=list(without_times(trace.events)))
        run = load_run(trace)
        self._messages.dismiss()
        self._session.show(run)
        self._opened_run = run
        self._messages.show_notice(
            describe_origin(trace), tr(TITLE), [(USE_SETTINGS, tr("Use its settings"))] if offer_settings else ()
        )
        return run

    @Slot(str)
    def save(self, path: str) -> None:
        """Write the shown run to a file atomically."""
        from decodescope.app.storage.exported_files import save_run

        if self._session.run is not None:
            try:
                save_run(self._session.run, Path(path))
            except DecodescopeError as error:
                self._messages.show_error(make_error_report(error))
                return
            self.fileUsed.emit(path)

    @Slot(str)
    def _on_action(self, name: str) -> None:
        if name == USE_SETTINGS and self._opened_run is not None:
            self._setup.apply_request(self._opened_run.request)

    @Slot(object)
    def _on_run_changed(self, _run: Run) -> None:
        """Close the notice when another run is shown."""
        self._opened_run = None
        self._messages.withdraw_notice(tr(TITLE))
