"""Fills an empty view, as its button asks: chooses what is needed and runs it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.control.borrowed_settings import DEMO, BorrowedSettings
from app.control.requests import ChosenSettings
from app.control.run_control import RunController
from app.panels.prompt import PromptPanel
from app.session.session import Session
from app.state.branching import Replacement, forbidden_in, why_not_branch
from app.state.empty_view import AS_SET, BRANCH, CHAT, strategies_for
from app.state.run import Run


class EmptyViewAction(QObject):
    """`promptWanted`: the cursor is to be in the prompt."""

    promptWanted = Signal()

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
    def fill(self, wanted: str) -> None:
        """Do what fills such a view: one of the names of `app.state.empty_view`."""
        if wanted == CHAT:
            self._prompt.mode.button("chat").click()
            self.promptWanted.emit()
        elif wanted == BRANCH and self._session.run is not None and not why_not_branch(self._session.run):
            self._branch(self._session.run)
        elif wanted == AS_SET:
            self._runs.run()
        else:
            self._borrowed.borrow(DEMO)  # the run has its request once it has begun
            try:
                self._choose(wanted)
                self._runs.run()
            finally:
                self._borrowed.give_back(DEMO)

    def _choose(self, wanted: str) -> None:
        """The first strategy for it that the model and the drafts there are allow, unless what is set does it."""
        chosen, info = self._chosen, self._session.model
        refused = info.refused_strategies if info is not None else {}
        ways = [way.name for way in strategies_for(wanted) if way.name not in refused]
        if chosen.strategy.name in ways and not chosen.drafts.problems:
            return
        for name in ways:
            chosen.strategy.choose(name, "strategy")
            if not chosen.drafts.problems:
                return

    def _branch(self, run: Run) -> None:
        """At the place where the likeliest token was the least sure, with another one."""
        places = _doubtful(run, self._runs.grammar)
        if places:
            _, place, other = min(places)
            self._runs.branch(Replacement(place, other))


def _doubtful(run: Run, grammar: object) -> list[tuple[float, int, int]]:
    """(share of the likeliest, place, likeliest other token) for every token of the shown text that had another which a
    run held to `grammar` can begin with."""
    found = []
    for place, token in enumerate(run.tokens):
        out = {token.id, *forbidden_in(run, token, grammar)}
        if others := [item.id for item in token.alternatives if item.id not in out]:
            found.append((token.alternatives[0].raw_probability, place, others[0]))
    return found
