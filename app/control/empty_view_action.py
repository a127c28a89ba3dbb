"""Fills an empty view, as its button asks: chooses what is needed and runs it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.control.borrowed_settings import DEMO, BorrowedSettings
from app.control.requests import ChosenSettings
from app.control.run_control import RunController
from app.panels.prompt import PromptPanel
from app.session.session import Session
from app.state.branching import TokenReplacement, branch_unsupported_reason, forbidden_ids
from app.state.empty_view import AS_SET, BRANCH, CHAT, strategies_for
from app.state.run import Run


class EmptyViewAction(QObject):
    """`promptRequested`: the cursor is to be in the prompt."""

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
        """Do what fills such a view: one of the names of `app.state.empty_view`."""
        if action == CHAT:
            self._prompt.mode.button("chat").click()
            self.promptRequested.emit()
        elif action == BRANCH and self._session.run is not None and not branch_unsupported_reason(self._session.run):
            self._branch(self._session.run)
        elif action == AS_SET:
            self._runs.run()
        else:
            self._borrowed.borrow(DEMO)  # the run has its request once it has begun
            try:
                self._select_strategy(action)
                self._runs.run()
            finally:
                self._borrowed.give_back(DEMO)

    def _select_strategy(self, action: str) -> None:
        """The first strategy for it that the model and the drafts there are allow, unless what is set does it."""
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
        """At the place where the likeliest token was the least sure, with another one."""
        candidates = _uncertain_positions(run, self._runs.grammar)
        if candidates:
            _, index, other = min(candidates)
            self._runs.branch(TokenReplacement(index, other))


def _uncertain_positions(run: Run, grammar: object) -> list[tuple[float, int, int]]:
    """(share of the likeliest, place, likeliest other token) for every token of the shown text that had another which a
    run held to `grammar` can begin with."""
    candidates = []
    for index, token in enumerate(run.tokens):
        out = {token.id, *forbidden_ids(run, token, grammar)}
        if others := [item.id for item in token.alternatives if item.id not in out]:
            candidates.append((token.alternatives[0].raw_probability, index, others[0]))
    return candidates
