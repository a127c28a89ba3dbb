"""Recorded runs by hand: one is opened from a file and shown as it was, the shown one is saved to a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.messages import Messages
from app.control.settings_controller import SettingsController
from app.session.session import Session
from app.state.run import Run
from app.state.worker_messages import make_error_report
from app.widgets.file_dialogs import open_file_dialog, open_save_dialog
from core.errors import DecodescopeError
from resources.language import mark, tr

SAVE_KINDS = mark("Recorded runs (*.decodescope)")
OPEN_KINDS = mark("Recorded runs (*.decodescope *.tokenscope)")
USE_SETTINGS = "use_recorded_settings"
TITLE = mark("This is a recorded run")


class RecordedRuns(QObject):
    """Opens and saves them; `over` is the part that their dialogs lie over. `fileUsed` with the path of a file that was
    opened or saved."""

    fileUsed = Signal(str)

    def __init__(self, over: QWidget, session: Session, setup: SettingsController, messages: Messages) -> None:
        super().__init__(over)
        self._over, self._session, self._setup, self._messages = over, session, setup, messages
        self._opened_run: Run | None = None
        messages.noticeAction.connect(self._on_action)
        session.runStarted.connect(self._on_run_changed)
        session.runShown.connect(self._on_run_changed)

    @Slot()
    def choose_file_to_open(self) -> None:
        """Choose a recorded run."""
        open_file_dialog(self._over, tr("Open a recorded run"), tr(OPEN_KINDS), self.open)

    @Slot()
    def choose_save_path(self) -> None:
        """Choose where the shown run is saved."""
        run = self._session.run
        if run is None or run.outcome is None:
            self._messages.show_notice(tr("A run can be saved once it has ended."), tr("There is nothing to save yet"))
        else:
            open_save_dialog(self._over, tr("Save this run"), "run.decodescope", tr(SAVE_KINDS), self.save)

    @Slot(str)
    def open(self, path: str) -> None:
        """Show the run in that file; what is set stays, until the reader asks for the run's own settings."""
        try:
            shown = self.show(Path(path))
        except DecodescopeError as error:
            self._messages.show_error(make_error_report(error))
            return
        if shown is not None:
            self.fileUsed.emit(path)

    def show(self, path: Path, omit_times: bool = False, offer_settings: bool = True) -> Run | None:
        """The same; `omit_times`: without times; `offer_settings`: its settings. None while a run is under way, and said.

        Raises DecodescopeError.
        """
        import core
        from app.session.engine_proxy import without_times
        from app.state.recorded_run import describe_origin, load_run

        if self._session.busy:
            self._messages.show_notice(
                tr("Stop the run, or wait for its end; then open the recorded one."), tr("Not yet")
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
        """Write the shown run to that file: the whole of it, or nothing."""
        from app.storage.exported_files import save_run

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
        """What the notice says belongs to another run."""
        self._opened_run = None
        self._messages.withdraw_notice(tr(TITLE))
