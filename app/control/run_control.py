"""Starts and stops runs for the button, shortcuts and the chat."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from decodescope.app.control.borrowed_settings import DEMO, BorrowedSettings
from decodescope.app.control.chat import AnswerRequest
from decodescope.app.control.messages import Messages
from decodescope.app.control.requests import ChosenSettings, RequestBuilder
from decodescope.app.panels.prompt_panel import PromptPanel
from decodescope.app.session.session import Session
from decodescope.app.state.branching import (
    PathContinuation,
    TokenReplacement,
    branch_unsupported_reason,
    forbidden_ids,
    make_branch,
)
from decodescope.app.state.empty_view import AS_SET, BRANCH, CHAT, strategies_for
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import RunRequest
from decodescope.resources.language import tr


class RunController(QObject):
    """Runs controller. `loadRequested`: retry loading the model, as no run has failed."""

    loadRequested = Signal()

    def __init__(self, session: Session, requests: RequestBuilder, messages: Messages) -> None:
        super().__init__(messages)
        self._session, self._requests, self._messages = session, requests, messages
        messages.retryRequested.connect(self.retry)

    @Slot()
    def run(self) -> bool:
        """Run with the current settings, after stopping a running one; return False with a message if impossible."""
        if not self._is_ready():
            return False
        self.start(self._requests.request())
        return True

    @Slot(int)
    def run_samples(self, count: int) -> None:
        """Generate `count` samples at once, each with its own seed."""
        if self._is_ready():
            from decodescope.app.state.sample_tree import make_samples_request

            self.start(make_samples_request(self._requests.request(), count))

    @Slot()
    def run_again(self) -> None:
        """Repeat the last run with its settings; an unlocked seed is drawn."""
        run = self._session.run
        if run is None:
            self.run()
        else:
            self.start(self._requests.repeat_request(run.request))

    @Slot(object)
    def answer(self, wanted: AnswerRequest) -> None:
        """Generate an answer to messages of the chat, or continue an edited one, unless a run is in progress."""
        if not self._session.busy and self._is_ready(has_prompt=True):
            self.start(self._requests.answer_request(wanted))

    @Slot(object)
    def branch(self, change: TokenReplacement | PathContinuation) -> None:
        """Branch from a position of the shown run with a replacement, using the current settings."""
        run = self._session.run
        if run is not None and not branch_unsupported_reason(run) and self._is_ready(has_prompt=True):
            self.start(make_branch(run, change, self._requests.request()))

    @property
    def grammar(self) -> object:
        """The grammar of a new run; None without one."""
        return self._requests.grammar

    @Slot()
    def stop(self) -> None:
        """Stop the run; its text stays."""
        self._session.stop()

    @Slot()
    def escape(self) -> None:
        """Stop the run, or close the open message."""
        if self._session.busy:
            self.stop()
        else:
            self._messages.dismiss()

    @Slot()
    def run_or_stop(self) -> None:
        """Run, or stop the current run."""
        if self._session.busy:
            self.stop()
        else:
            self.run()

    @Slot()
    def retry(self) -> None:
        """Retry what failed: the run, or loading a model."""
        last = self._session.latest
        if last is None or last.outcome is None or last.outcome.kind != "failed":
            self.loadRequested.emit()
        elif last.request.scored or last.request.is_branch:
            self.start(last.request)
        else:
            self.run()

    def _is_ready(self, has_prompt: bool = False) -> bool:
        """Return whether a run can start; show the reason if not."""
        problems = self._requests.settings_problems if has_prompt else self._requests.problems
        if not problems and not has_prompt and (error := self._requests.input_error) is not None:
            self._messages.show_error(error)
            return False
        if problems:
            self._messages.show_setup_error(tr("Cannot run yet"), " ".join(problems), tr("Change them and run again."))
        return not problems

    @Slot(object)
    def start(self, request: RunRequest) -> None:
        """Start a run and close earlier messages."""
        self._messages.dismiss()
        self._session.start(request)


class EmptyViewAction(QObject):
    """`promptRequested`: focus the prompt."""

    promptRequested = Signal()

    def __init__(
        self,
        session: Session,
        chosen: ChosenSettings,
        prompt: PromptPanel,
        runs: RunController,
        borrowed: BorrowedSettings,
    ) -> None:
        super().__init__(prompt)
        self._session, self._chosen, self._prompt, self._runs = session, chosen, prompt, runs
        self._borrowed = borrowed

    @Slot(str)
    def fill(self, action: str) -> None:
        """Do what fills the view; `action` is one of the names in `app.state.empty_view`."""
        if action == CHAT:
            self._prompt.mode.button("chat").click()
            self.promptRequested.emit()
        elif action == BRANCH and self._session.run is not None and not branch_unsupported_reason(self._session.run):
            self._branch(self._session.run)
        elif action == AS_SET:
            self._runs.run()
        else:
            self._borrowed.borrow(DEMO)  # the run has its own copy of the request once it has started
            try:
                self._select_strategy(action)
                self._runs.run()
            finally:
                self._borrowed.give_back(DEMO)

    def _select_strategy(self, action: str) -> None:
        """Select the first suitable strategy that model and drafts allow, unless the current one is suitable."""
        chosen, info = self._chosen, self._session.model
        refused = info.unsupported_strategies if info is not None else {}
        names = [way.name for way in strategies_for(action) if way.name not in refused]
        if chosen.strategy.name in names and not chosen.drafts.problems:
            return
        for name in names:
            chosen.strategy.choose(name, "strategy")
            if not chosen.drafts.problems:
                return

    def _branch(self, run: Run) -> None:
        """Branch at the least certain token, with its likeliest alternative."""
        candidates = _uncertain_positions(run, self._runs.grammar)
        if candidates:
            _, index, other = min(candidates)
            self._runs.branch(TokenReplacement(index, other))


def _uncertain_positions(run: Run, grammar: object) -> list[tuple[float, int, int]]:
    """Return (probability of the likeliest token, position, likeliest other token) for every shown token with an
    alternative that `grammar` allows.
    """
    candidates = []
    for index, token in enumerate(run.tokens):
        out = {token.id, *forbidden_ids(run, token, grammar)}
        if others := [item.id for item in token.alternatives if item.id not in out]:
            candidates.append((token.alternatives[0].raw_probability, index, others[0]))
    return candidates
