"""Starts and stops runs, as the button, the keys and the chat ask for it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.control.messages import Messages
from app.control.requests import RequestBuilder
from app.session.session import Session
from app.state.branching import PathContinuation, TokenReplacement, branch_unsupported_reason, make_branch
from app.state.worker_messages import Prompt, RunRequest
from resources.language import tr


class RunController(QObject):
    """`loadRequested`: not a run has failed but the loading of a model, and that is to be tried again."""

    loadRequested = Signal()

    def __init__(self, session: Session, requests: RequestBuilder, messages: Messages) -> None:
        super().__init__(messages)
        self._session, self._requests, self._messages = session, requests, messages
        messages.retryRequested.connect(self.retry)

    @Slot()
    def run(self) -> bool:
        """Run what is set; a run under way is stopped first. False where it cannot be run, which is told."""
        if not self._is_ready():
            return False
        self.start(self._requests.request())
        return True

    @Slot(int)
    def run_samples(self, count: int) -> None:
        """Write what is set so many times at once, each text with a seed of its own."""
        if self._is_ready():
            from app.state.sample_tree import make_samples_request

            self.start(make_samples_request(self._requests.request(), count))

    @Slot()
    def run_again(self) -> None:
        """The last run once more, whatever has been set since; an unlocked seed is drawn anew."""
        run = self._session.run
        if run is None:
            self.run()
        else:
            self.start(self._requests.repeat_request(run.request))

    @Slot(object)
    def regenerate(self, prompt: Prompt) -> None:
        """Another answer to `prompt`, unless a run is under way."""
        if not self._session.busy:
            self.start(self._requests.regenerate_request(prompt))

    @Slot(object)
    def branch(self, change: TokenReplacement | PathContinuation) -> None:
        """Go on from a place of the shown run's text with something else, as everything is set now."""
        run = self._session.run
        if run is not None and not branch_unsupported_reason(run) and self._is_ready(has_prompt=True):
            self.start(make_branch(run, change, self._requests.request()))

    @property
    def grammar(self) -> object:
        """What a new run's text would be held to; None for nothing."""
        return self._requests.grammar

    @Slot()
    def stop(self) -> None:
        """Stop the run; what it has written stays."""
        self._session.stop()

    @Slot()
    def escape(self) -> None:
        """Stop the run, or close the message that is open."""
        if self._session.busy:
            self.stop()
        else:
            self._messages.dismiss()

    @Slot()
    def run_or_stop(self) -> None:
        """What the one button does."""
        if self._session.busy:
            self.stop()
        else:
            self.run()

    @Slot()
    def retry(self) -> None:
        """What failed once more: the run, or the loading of a model."""
        last = self._session.latest
        if last is None or last.outcome is None or last.outcome.kind != "failed":
            self.loadRequested.emit()
        elif last.request.scored or last.request.is_branch:
            self.start(last.request)
        else:
            self.run()

    def _is_ready(self, has_prompt: bool = False) -> bool:
        """Whether a run can start as things are set; says why where not."""
        problems = self._requests.settings_problems if has_prompt else self._requests.problems
        if problems:
            self._messages.show_setup_error(
                tr("This cannot be run yet"), " ".join(problems), tr("Change it and run again.")
            )
        return not problems

    @Slot(object)
    def start(self, request: RunRequest) -> None:
        """Begin a run, and put away what was said of the one before."""
        self._messages.dismiss()
        self._session.start(request)
