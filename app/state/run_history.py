"""The runs that a window has shown, in order, and which of them it shows now. No Qt in here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from app.state.run import Run
from core import cut_short, strategies, words
from resources.language import tr

MAX_RUNS_IN_MEMORY = 6
"""Runs that are held whole; others are read from their recordings again, where they were kept."""


class NavigationHistory:
    """A run that is made or opened is the last one, whatever was shown before: going back loses nothing."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.index = -1
        """Of the shown run; −1 before there is one."""
        self._runs_in_memory: dict[str, Run] = {}

    @property
    def shown(self) -> str | None:
        """The shown run's id."""
        return self.ids[self.index] if self.index >= 0 else None

    def show(self, run: Run) -> None:
        """`run` is shown now."""
        self._runs_in_memory.pop(run.id, None)
        self._runs_in_memory[run.id] = run
        while len(self._runs_in_memory) > MAX_RUNS_IN_MEMORY:
            del self._runs_in_memory[next(iter(self._runs_in_memory))]
        if run.id != self.shown:
            self.ids = [one for one in self.ids if one != run.id] + [run.id]
            self.index = len(self.ids) - 1

    def insert_first(self, run: str) -> None:
        """That one was made before all of these: it is where going back from the first one leads."""
        self.ids.insert(0, run)
        self.index += 1

    def run_in_memory(self, run: str) -> Run | None:
        """The run, where it is still in memory."""
        return self._runs_in_memory.get(run)

    def neighbour(self, step: int) -> str | None:
        """The run so many places further on (before: below 0), if there is one."""
        place = self.index + step
        return self.ids[place] if 0 <= place < len(self.ids) else None

    def go(self, run: str) -> None:
        """The shown run is that one of these from now on."""
        self.index = self.ids.index(run)

    def remove(self, deleted: Collection[str]) -> None:
        """These are no more; the shown one stays."""
        shown = self.shown
        self.ids = [run for run in self.ids if run not in deleted or run == shown]
        self.index = self.ids.index(shown) if shown is not None else -1
        self._runs_in_memory = {run: held for run, held in self._runs_in_memory.items() if run in self.ids}


MAX_EXCERPT_LENGTH = 48
"""Characters of a text that stand for it."""


class RunTreeEntry(NamedTuple):
    """One run of a family."""

    id: str
    parent: str
    """The run whose text it took up; empty for one that began it all."""
    shared_tokens: int
    """How many tokens of the answer are the parent's."""
    excerpt: str
    """What stands there instead; of the first run, how its text begins."""
    strategy: str
    tokens: int
    """That it has written itself; of a score, all that were scored."""
    text: str
    """Everything, from the beginning of its answer."""
    is_scored: bool = False

    @property
    def summary(self) -> str:
        """`Greedy · 60 tokens`."""
        entry = strategies.registry.get(self.strategy)
        how = tr("Scored") if self.is_scored else tr(entry.title) if entry is not None else self.strategy
        return f"{how} · {words.count(self.tokens, 'token')}"


class RunTrees:
    """All that are known, by their ids; those that belong together are found by their parents."""

    def __init__(self) -> None:
        self._members: dict[str, RunTreeEntry] = {}
        self.runs_in_memory: dict[str, Run] = {}
        """Those that are in memory, whole."""

    def __contains__(self, run: str) -> bool:
        return run in self._members

    def add(self, member: RunTreeEntry) -> None:
        """One more, or what has become of one."""
        self._members[member.id] = member

    def tree_of(self, run: str) -> list[RunTreeEntry]:
        """The whole tree that a run stands in, in the order they came; empty for a stranger."""
        if run not in self._members:
            return []
        root = self._root(run)
        return [member for member in self._members.values() if self._root(member.id) == root]

    def _root(self, run: str) -> str:
        seen = {run}
        while (parent := self._members[run].parent) in self._members and parent not in seen:
            run = parent
            seen.add(run)
        return run


def parents_first(members: Sequence[RunTreeEntry]) -> list[RunTreeEntry]:
    """Parents before their children, whatever order they came in."""
    known, done = {member.id for member in members}, dict[str, RunTreeEntry]()
    waiting = list(members)
    while waiting:
        ready = [member for member in waiting if member.parent in done or member.parent not in known]
        if not ready:
            break  # a circle, which no run of this program makes
        done |= {member.id: member for member in ready}
        waiting = [member for member in waiting if member.id not in done]
    return list(done.values())


def make_entry(run: Run) -> RunTreeEntry:
    """A run as its family sees it."""
    request = run.request
    instead = "".join(token.text or token.piece for token in run.beginning[request.place :])
    told = instead if request.is_branch else run.text.strip()
    return RunTreeEntry(
        run.id, request.parent, request.place, _short(told), request.strategy, len(run.tokens), run.text,
        run.is_scored,
    )  # fmt: skip


def _short(text: str) -> str:
    return cut_short(" ".join(text.split()), MAX_EXCERPT_LENGTH)
