"""Shows the progress of a run in the frame: Run/Stop button, progress bar, status line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from decodescope import core
from decodescope.app.control.messages import Messages
from decodescope.app.panels.centre import Centre
from decodescope.app.panels.status_line import StatusLine
from decodescope.app.session.session import Session
from decodescope.app.state import run_status
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import ErrorReport, Outcome
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.events import Event

LONG_STOP_MS = 5000
"""Delay before a notice explains why a run is still stopping."""
_STILL_STOPPING = mark("Still stopping")


class RunFeed(QObject):
    """Updates the frame from the session's signals. `buttonStateChanged(state)`: `run`, `stop` or `stopping` for the
    run button; `runEnded`: the end of a run is shown.
    """

    buttonStateChanged = Signal(str)
    runEnded = Signal()

    def __init__(self, session: Session, centre: Centre, status: StatusLine, messages: Messages) -> None:
        super().__init__(centre)
        self._session, self._centre, self._status, self._messages = session, centre, status, messages
        self.answers_client: Callable[[], bool] = _never
        """Returns whether the latest run answers a client of the server, who receives its errors and notices."""
        self._long_stop_timer = QTimer(self)
        self._long_stop_timer.setSingleShot(True)
        self._long_stop_timer.timeout.connect(self._on_long_stop)
        session.runStarted.connect(self.on_started)
        session.runShown.connect(self.on_shown)
        session.eventsArrived.connect(self.on_events)
        session.cursorMoved.connect(centre.update_sequence_selector)
        session.finished.connect(self.on_finished)
        session.stateChanged.connect(self.on_state)
        session.modelLoading.connect(status.show_loading)
        session.modelReady.connect(status.show_model)
        session.failed.connect(self.on_failed)
        messages.errorDismissed.connect(status.clear_failure)

    @Slot(object)
    def on_started(self, run: Run) -> None:
        """Show a new run."""
        self._centre.update_sequence_selector(run)
        self._status.show_run(run)

    @Slot(object)
    def on_shown(self, run: Run) -> None:
        """Show an earlier run."""
        self._centre.update_sequence_selector(run)
        self._status.show_run(run)
        has_failed = run.outcome is not None and run.outcome.kind == "failed"
        self._status.show_outcome(run_status.outcome_line(run), is_failure=has_failed)

    @Slot(object, object)
    def on_events(self, run: Run, events: Sequence[Event]) -> None:
        """Update for a batch of events; show at once that memory ran out."""
        for event in events:
            if isinstance(event, core.events.Notice) and event.kind == "memory_fallback" and not self.answers_client():
                self._messages.show_notice(event.message, tr("Memory ran out; run continues"))
        if len(run.sequences) != max(1, self._centre.sequence_combo.count()):
            self._centre.update_sequence_selector(run)
        self._status.refresh_first_token()

    @Slot(object)
    def on_finished(self, outcome: Outcome) -> None:
        """Show the outcome of the run."""
        is_own = not self.answers_client()
        self._status.show_outcome(outcome.message, is_failure=outcome.kind == "failed" and is_own)
        run = self._session.run
        if run is not None and run.notices and outcome.error is None and is_own:
            self._messages.show_notice("\n".join(notice.message for notice in run.notices), tr("About this run"))
        self.runEnded.emit()

    @Slot(str)
    def on_state(self, state: str) -> None:
        """Update the button and the progress bar."""
        face = "stopping" if state == "stopping" else "stop" if self._session.busy else "run"
        self.buttonStateChanged.emit(face)
        if state == "stopping":
            self._long_stop_timer.start(LONG_STOP_MS)
        else:
            self._long_stop_timer.stop()
            self._messages.withdraw_notice(tr(_STILL_STOPPING))
        self._centre.set_loading(state == "loading")

    @Slot(bool)
    def on_language_pending(self, is_pending: bool) -> None:
        """Show or withdraw the notice that the language change is delayed."""
        title = tr("Language change pending")
        if is_pending:
            self._messages.show_notice(tr("The current run finishes first."), title)
        else:
            self._messages.withdraw_notice(title)

    @Slot(object)
    def on_failed(self, error: ErrorReport) -> None:
        """Show the failure of a run or of loading a model."""
        model = self._session.model
        if model is not None:
            self._status.show_model(model)
        else:
            self._status.show_state(tr("No model loaded"))
        if not self.answers_client():
            self._messages.show_error(error)

    @Slot()
    def _on_long_stop(self) -> None:
        self._messages.show_notice(
            tr(
                "A run stops between two steps, and the current step takes long: loading a model, or "
                "reading a long prompt. The text so far is kept. Close the window to end the run "
                "immediately."
            ),
            tr(_STILL_STOPPING),
        )


def _never() -> bool:
    return False
