"""Recorded runs by hand: one is opened from a file and shown as it was, the shown one is saved to a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.control.messages import Messages
from app.control.settings_setup import SetupController
from app.session.session import Session
from app.state.run import Run
from app.state.worker_messages import report
from app.widgets.ask_file import ask_what_to_open, ask_where_to_save
from core.errors import DecodescopeError
from resources.language import mark, tr

KINDS = mark("Recorded runs (*.decodescope)")
READABLE = mark("Recorded runs (*.decodescope *.tokenscope)")
USE_SETTINGS = "use_recorded_settings"
TITLE = mark("This is a recorded run")


class RecordedRuns(QObject):
    """Opens and saves them; `over` is the part that their dialogs lie over. `fileUsed` with the path of a file that was
    opened or saved."""

    fileUsed = Signal(str)

    def __init__(self, over: QWidget, session: Session, setup: SetupController, messages: Messages) -> None:
        super().__init__(over)
        self._over, self._session, self._setup, self._messages = over, session, setup, messages
        self._opened: Run | None = None
        messages.noticeAction.connect(self._on_action)
        session.runStarted.connect(self._on_other_run)
        session.runShown.connect(self._on_other_run)

    @Slot()
    def ask_what_to_open(self) -> None:
        """Choose a recorded run."""
        ask_what_to_open(self._over, tr("Open a recorded run"), tr(READABLE), self.open)

    @Slot()
    def ask_where_to_save(self) -> None:
        """Choose where the shown run is saved."""
        run = self._session.run
        if run is None or run.outcome is None:
            self._messages.show_notice(tr("A run can be saved once it has ended."), tr("There is nothing to save yet"))
        else:
            ask_where_to_save(self._over, tr("Save this run"), "run.decodescope", tr(KINDS), self.save)

    @Slot(str)
    def open(self, path: str) -> None:
        """Show the run in that file; what is set stays, until the reader asks for the run's own settings."""
        try:
            shown = self.show(Path(path))
        except DecodescopeError as error:
            self._messages.show_error(report(error))
            return
        if shown is not None:
            self.fileUsed.emit(path)

    def show(self, path: Path, is_still: bool = False, offers: bool = True) -> Run | None:
        """The same; `is_still`: without times; `offers`: its settings. None while a run is under way, and said.

        Raises DecodescopeError.
        """
        import core
        from app.session.deterministic_engine import without_times
        from app.state.recorded_run import run_of
        from app.state.run_origin import told

        if self._session.busy:
            self._messages.show_notice(
                tr("Stop the run, or wait for its end; then open the recorded one."), tr("Not yet")
            )
            return None
        trace = core.trace.read(path)
        if is_still:
            trace = replace(trace, events=list(without_times(trace.events)))
        run = run_of(trace)
        self._messages.dismiss()
        self._session.show(run)
        self._opened = run
        self._messages.show_notice(told(trace), tr(TITLE), [(USE_SETTINGS, tr("Use its settings"))] if offers else ())
        return run

    @Slot(str)
    def save(self, path: str) -> None:
        """Write the shown run to that file: the whole of it, or nothing."""
        from app.storage.recorded_file import save_run

        if self._session.run is not None:
            try:
                save_run(self._session.run, Path(path))
            except DecodescopeError as error:
                self._messages.show_error(report(error))
                return
            self.fileUsed.emit(path)

    @Slot(str)
    def _on_action(self, name: str) -> None:
        if name == USE_SETTINGS and self._opened is not None:
            self._setup.apply_request(self._opened.request)

    @Slot(object)
    def _on_other_run(self, _run: Run) -> None:
        """What the notice says belongs to another run."""
        self._opened = None
        self._messages.withdraw_notice(tr(TITLE))
